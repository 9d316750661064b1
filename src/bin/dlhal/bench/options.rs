//! The command line of `dlhal bench`.

use std::path::PathBuf;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// The device's number.
    pub(super) device: i32,
    /// Parts of the names of what is to be measured; all of it if empty.
    pub(super) only: Vec<String>,
    pub(super) quick: bool,
    pub(super) list: bool,
    pub(super) json: Option<PathBuf>,
    pub(super) svg: Option<PathBuf>,
    /// A part to measure in every way that the environment can ask for; all parts if empty.
    pub(super) ways: Option<String>,
}

impl Options {
    /// Reads the arguments after `bench`; `None` if they are wrong.
    pub(super) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            match *argument {
                "--quick" => options.quick = true,
                "--list" => options.list = true,
                "--device" => options.device = rest.next()?.parse().ok().filter(|n| *n >= 0)?,
                "--only" => options.only.push((*rest.next()?).to_owned()),
                "--json" => options.json = Some(rest.next()?.into()),
                "--svg" => options.svg = Some(rest.next()?.into()),
                "--ways" => {
                    let part = rest.next_if(|next| !next.starts_with("--"));
                    options.ways = Some(part.map_or(String::new(), |part| (*part).to_owned()));
                }
                _ => return None,
            }
        }
        // The ways are measured as they are named, and printed by the processes that measure them.
        let alone = options.only.is_empty() && options.json.is_none() && options.svg.is_none();
        (options.ways.is_none() || alone).then_some(options)
    }

    /// Whether what has this name and group is asked for.
    pub(super) fn wants(&self, name: &str, group: &str) -> bool {
        let wanted = |only: &String| name.contains(only.as_str()) || group == only;
        self.only.is_empty() || self.only.iter().any(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_sets_its_own_option() {
        let options = Options::parse(&[
            "--device",
            "2",
            "--only",
            "launch",
            "--only",
            "host copies",
            "--quick",
            "--json",
            "a",
            "--svg",
            "b",
            "--list",
        ]);
        let expected = Options {
            device: 2,
            only: vec!["launch".to_owned(), "host copies".to_owned()],
            quick: true,
            list: true,
            json: Some("a".into()),
            svg: Some("b".into()),
            ways: None,
        };
        assert_eq!(options, Some(expected));
    }

    #[test]
    fn ways_take_a_part_or_none() {
        let ways = |arguments: &[&str]| Options::parse(arguments).and_then(|options| options.ways);
        assert_eq!(ways(&["--ways", "host", "--quick"]), Some("host".to_owned()));
        assert_eq!(ways(&["--ways", "--quick"]), Some(String::new()));
        assert_eq!(ways(&["--ways", "--json", "a"]), None);
    }

    #[test]
    fn what_is_unknown_missing_or_no_number_is_wrong() {
        for wrong in [&["--fast"][..], &["--json"], &["--device", "x"], &["--device", "-1"], &["a"]]
        {
            assert_eq!(Options::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_part_of_the_name_or_the_whole_group_is_wanted() {
        let only = |word: &str| Options { only: vec![word.to_owned()], ..Options::default() };
        assert!(Options::default().wants("one launch", "waits"));
        assert!(only("launch").wants("one launch", "waits"));
        assert!(only("waits").wants("one launch", "waits"));
        assert!(!only("wait").wants("one launch", "waits"));
    }
}
