//! The README shows the examples that are built and run.

const README: &str = include_str!("../README.md");

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") })
        .collect()
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = include_str!("../examples/hello.c");
    assert!(README.contains(&indented(example)), "README.md: renew the example");
    assert!(example.lines().count() <= 40, "the example is longer than promised");
}

#[test]
fn the_readme_shows_how_tvm_compiles_a_model() {
    let example = include_str!("../examples/tvm_model.py");
    let from = example.find("import tvm\n").unwrap();
    let last = example.find("\nvm = ").unwrap() + 1;
    let to = last + example[last..].find('\n').unwrap();
    assert!(README.contains(&indented(&example[from..to])), "README.md: renew the TVM example");
}
