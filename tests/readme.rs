//! The README shows the example that is built and run.

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let example = include_str!("../examples/hello.c");
    let indented: String = example
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") })
        .collect();
    assert!(include_str!("../README.md").contains(&indented), "README.md: renew the example");
    assert!(example.lines().count() <= 40, "the example is longer than promised");
}
