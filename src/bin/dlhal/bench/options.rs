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
}

impl Options {
    /// Reads the arguments after `bench`; `None` if they are wrong.
    pub(super) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--quick" => options.quick = true,
                "--list" => options.list = true,
                "--device" => options.device = rest.next()?.parse().ok().filter(|n| *n >= 0)?,
                "--only" => options.only.push((*rest.next()?).to_owned()),
                "--json" => options.json = Some(rest.next()?.into()),
                "--svg" => options.svg = Some(rest.next()?.into()),
                _ => return None,
            }
        }
        Some(options)
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
        };
        assert_eq!(options, Some(expected));
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
