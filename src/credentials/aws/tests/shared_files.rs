//! Files as they are found, and commands with quotes.

use super::*;

#[test]
fn profiles_of_both_files_are_merged() {
    let config = "\
# a comment
[default]
region = eu-central-1
s3 =
  addressing_style = path
  region = not-this

[profile dev]
ROLE_ARN = arn:aws:iam::123456789012:role/dev
source_profile=default
aws_access_key_id : from-config

[profile \"two words\"]
region = us-east-1
[preview]
cloudfront = true
[profiles]
a = b
";
    let credentials = "; a comment\n[default]\naws_access_key_id = AKID\naws_secret_access_key = a=b\n\n[dev]\naws_access_key_id = own\n[other]\n";
    let files = SharedFiles::parse(config, credentials).expect("both are right");
    let default = files.profile("default").expect("it is there");
    assert_eq!(default["region"], "eu-central-1");
    assert_eq!(default["aws_secret_access_key"], "a=b");
    let dev = files.profile("dev").expect("it is there");
    assert_eq!(dev["role_arn"], "arn:aws:iam::123456789012:role/dev");
    assert_eq!(dev["aws_access_key_id"], "own");
    let config = files.in_config_file("dev").expect("it is there");
    assert_eq!(config["aws_access_key_id"], "from-config");
    assert!(files.profile("two words").is_some());
    assert!(
        files
            .profile("other")
            .is_some_and(|profile| profile.is_empty())
    );
    assert!(files.in_credentials_file("two words").is_none());
    for none in ["preview", "profiles", "profile dev", "s"] {
        assert_eq!(files.profile(none), None, "{none}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    for (config, credentials, expected) in [
        (
            "a = b",
            "",
            "line 1 of the shared config file of AWS cannot be read",
        ),
        (
            "[default]\nword",
            "",
            "line 2 of the shared config file of AWS cannot be read",
        ),
        (
            "",
            "\n\n[default",
            "line 3 of the shared credentials file of AWS cannot be read",
        ),
    ] {
        let error = SharedFiles::parse(config, credentials).expect_err(expected);
        assert_eq!(error, expected);
    }
}

#[test]
fn commands_are_split_as_a_shell_does() {
    for (text, words) in [
        ("", Some(vec![])),
        (" a  b\tc ", Some(vec!["a", "b", "c"])),
        (
            r#"a 'b c' "d \"e\" \n" f\ g"#,
            Some(vec!["a", "b c", r#"d "e" \n"#, "f g"]),
        ),
        (r#"a"b"'c'd"#, Some(vec!["abcd"])),
        (r#"'' """#, Some(vec!["", ""])),
        ("'open", None),
        ("\"open", None),
        ("open\\", None),
    ] {
        let words = words.map(|words| words.into_iter().map(str::to_owned).collect());
        assert_eq!(split_words(text), words, "{text}");
    }
}
