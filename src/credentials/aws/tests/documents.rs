//! Answers as AWS documents them, and answers that are wrong.

use secrecy::ExposeSecret as _;

use super::*;

const STS: &str = r#"<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleResult>
    <SourceIdentity>Alice</SourceIdentity>
    <AssumedRoleUser>
      <Arn>arn:aws:sts::123456789012:assumed-role/demo/TestAR</Arn>
      <AssumedRoleId>ARO123EXAMPLE123:TestAR</AssumedRoleId>
    </AssumedRoleUser>
    <Credentials>
      <AccessKeyId>ASIAIOSFODNN7EXAMPLE</AccessKeyId>
      <SecretAccessKey>wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY</SecretAccessKey>
      <SessionToken>AQoDYXdzEPT//////////wEXAMPLE==</SessionToken>
      <Expiration>2019-11-09T13:34:41Z</Expiration>
    </Credentials>
    <PackedPolicySize>6</PackedPolicySize>
  </AssumeRoleResult>
</AssumeRoleResponse>"#;

#[test]
fn an_answer_of_sts_is_decoded() {
    let credentials = decode_sts(STS).expect("credentials");
    assert_eq!(credentials.access_key_id, "ASIAIOSFODNN7EXAMPLE");
    let secret = credentials.secret_access_key.expose_secret();
    assert_eq!(secret, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY");
    let token = credentials.session_token.expect("a token");
    assert_eq!(token.expose_secret(), "AQoDYXdzEPT//////////wEXAMPLE==");
    let expires_at = credentials.expires_at.expect("a time").as_second();
    assert_eq!(expires_at, 1_573_306_481);
    for name in [
        "AccessKeyId",
        "SecretAccessKey",
        "SessionToken",
        "Expiration",
        "Credentials",
    ] {
        let without = STS.replace(&format!("<{name}>"), "<Other>");
        let error = decode_sts(&without).expect_err(name);
        assert_eq!(error, format!("its answer has no `{name}`"));
    }
}

#[test]
fn an_error_of_sts_is_named() {
    let xml = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>\
               <Message>User: a is not &lt;authorized&gt; &amp;amp; so on</Message></Error></ErrorResponse>";
    let error = decode_sts_error(xml).expect("an error");
    assert_eq!(
        error,
        "AccessDenied: User: a is not <authorized> &amp; so on"
    );
    assert_eq!(decode_sts_error("<html>"), None);
}

#[test]
fn credentials_of_instances_containers_and_commands_are_decoded() {
    let instance = br#"{"Code":"Success","LastUpdated":"2026-04-26T16:39:16Z","Type":"AWS-HMAC",
        "AccessKeyId":"ASIA","SecretAccessKey":"secret","Token":"token","Expiration":"2026-05-17T15:09:54Z"}"#;
    let credentials = decode_metadata(instance).expect("credentials");
    assert_eq!(credentials.access_key_id, "ASIA");
    assert_eq!(
        credentials.session_token.expect("a token").expose_secret(),
        "token"
    );
    let process = br#"{"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"secret"}"#;
    let credentials = decode_process(process).expect("credentials");
    assert_eq!(credentials.expires_at, None);
    assert!(credentials.session_token.is_none());
    let process = br#"{"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"secret","SessionToken":"t","Expiration":"2026-05-17T15:09:54+00:00"}"#;
    let credentials = decode_process(process).expect("credentials");
    assert_eq!(
        credentials.session_token.expect("a token").expose_secret(),
        "t"
    );
    assert!(credentials.expires_at.is_some());
}

/// No error tells anything of a secret.
#[test]
fn wrong_answers_are_named_without_what_they_hold() {
    for (body, expected) in [
        ("{}", "its answer has no `AccessKeyId`"),
        (
            r#"{"AccessKeyId":"","SecretAccessKey":"hush"}"#,
            "its answer has no `AccessKeyId`",
        ),
        (
            r#"{"AccessKeyId":"A"}"#,
            "its answer has no `SecretAccessKey`",
        ),
        (
            r#"{"AccessKeyId":"A","SecretAccessKey":"hush","Expiration":"hush"}"#,
            "its answer has an `Expiration` that is no time",
        ),
        (r#"{"Code":"Failed"}"#, "it has no credentials: Failed"),
        (
            "hush",
            "its answer is no JSON with credentials (line 1, column 1)",
        ),
        (
            r#"{"AccessKeyId":{"hush":1}}"#,
            "its answer is no JSON with credentials (line 1, column 15)",
        ),
    ] {
        assert_eq!(decode_metadata(body.as_bytes()).expect_err(body), expected);
    }
    let error = decode_process(b"{}").expect_err("no version");
    assert_eq!(error, "its output has no `Version`");
    let error = decode_process(br#"{"Version":2}"#).expect_err("another version");
    assert_eq!(error, "its output has `Version` 2, not 1");
}
