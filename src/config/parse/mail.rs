//! The table `console.mail`.

use std::net::IpAddr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::config::settings::{
    MailConfig, MailRoute, MailSender, Secret, SmtpLogin, SmtpSecurity, SmtpServer,
};
use crate::config::table::{ConfigField, ConfigReader};
use crate::config::values::{self, Parsed};

/// The ports of submission, with TLS from the first byte and with STARTTLS.
const TLS_PORT: u16 = 465;
const STARTTLS_PORT: u16 = 587;

pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Option<MailConfig> {
    let mut table = reader.table("mail", field)?;
    let position = table.position;
    let from = reader.required(&mut table, "from", sender);
    let smtp = table.take("smtp");
    let file = table.take("file");
    if let (Some(_), Some(file)) = (smtp, file) {
        let message = "mail takes \"smtp\" or \"file\", not both; remove one";
        reader.problems.add(file.node.position, message);
    }
    let route = match (smtp, file) {
        (Some(field), _) => {
            let server = reader.hidden(field, smtp_server);
            server.map(|server| MailRoute::Smtp(server.value))
        }
        (None, Some(field)) => {
            let path = reader.value(field, values::label);
            path.map(|path| MailRoute::Folder(PathBuf::from(path.value)))
        }
        (None, None) => {
            let message = "mail needs \"smtp\", or \"file\" with a folder for the messages";
            reader.problems.add(position, message);
            None
        }
    };
    reader.finish(table);
    Some(MailConfig {
        from: from?.value,
        route: route?,
    })
}

/// An address, with or without a name: `Omniglot <noreply@example.com>`.
fn sender(text: &str) -> Parsed<MailSender> {
    let expected = || "an address such as \"Omniglot <noreply@example.com>\"".to_owned();
    let text = text.trim();
    let (name, address) = match text.strip_suffix('>').and_then(|rest| rest.split_once('<')) {
        Some((name, address)) => (name.trim().trim_matches('"'), address),
        None => ("", text),
    };
    if name
        .chars()
        .any(|letter| letter.is_control() || letter == '"')
    {
        return Err(expected());
    }
    Ok(MailSender {
        name: (!name.is_empty()).then(|| name.to_owned()),
        address: values::mail_address(address).map_err(|_| expected())?,
    })
}

/// `smtps://` has TLS from the first byte, `smtp://` by STARTTLS. Without TLS it goes to this machine only.
fn smtp_server(text: &str) -> Parsed<SmtpServer> {
    let expected =
        || "a URL such as smtps://user:password@mail.example.com (its value is not shown here)";
    let url = Url::parse(text).map_err(|_| expected())?;
    let is_plain_path = matches!(url.path(), "" | "/");
    if !is_plain_path || url.query().is_some() || url.fragment().is_some() {
        return Err(expected().to_owned());
    }
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(expected)?.trim_matches(['[', ']']);
    let is_loopback = match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    };
    let (security, port) = match url.scheme() {
        "smtps" => (SmtpSecurity::Tls, TLS_PORT),
        "smtp" if is_loopback => (SmtpSecurity::Plain, STARTTLS_PORT),
        "smtp" => (SmtpSecurity::StartTls, STARTTLS_PORT),
        _ => return Err(expected().to_owned()),
    };
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(|text| text.into_owned()).map_err(|_| expected())
    };
    let login = match (url.username(), url.password()) {
        ("", None) => None,
        (user, Some(password)) if !user.is_empty() => Some(SmtpLogin {
            user: decoded(user)?,
            password: Secret::new(decoded(password)?),
        }),
        _ => return Err(expected().to_owned()),
    };
    Ok(SmtpServer {
        host: host.to_owned(),
        port: url.port().unwrap_or(port),
        security,
        login,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_needed_except_on_this_machine() {
        for (url, host, port, security) in [
            (
                "smtps://mail.example.com",
                "mail.example.com",
                465,
                SmtpSecurity::Tls,
            ),
            (
                "smtps://127.0.0.1:4650",
                "127.0.0.1",
                4650,
                SmtpSecurity::Tls,
            ),
            (
                "smtp://mail.example.com",
                "mail.example.com",
                587,
                SmtpSecurity::StartTls,
            ),
            (
                "smtp://mail.example.com:25/",
                "mail.example.com",
                25,
                SmtpSecurity::StartTls,
            ),
            (
                "smtp://127.0.0.1:2525",
                "127.0.0.1",
                2525,
                SmtpSecurity::Plain,
            ),
            ("smtp://[::1]:25", "::1", 25, SmtpSecurity::Plain),
        ] {
            let server = smtp_server(url).expect(url);
            assert_eq!(
                (&*server.host, server.port, server.security),
                (host, port, security),
                "{url}"
            );
            assert!(server.login.is_none(), "{url}");
        }
        let login = smtp_server("smtps://a%40b:p%2Fw@mail.example.com").expect("a server");
        let login = login.login.expect("a login");
        assert_eq!((&*login.user, login.password.expose()), ("a@b", "p/w"));
        for wrong in [
            "mail.example.com",
            "https://mail.example.com",
            "smtps://mail.example.com/path",
            "smtps://user@mail.example.com",
            "smtps://mail.example.com?tls=none",
            "smtps:///",
        ] {
            assert!(smtp_server(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_sender_has_an_address_and_perhaps_a_name() {
        let named = sender("Omniglot <noreply@example.com>").expect("a sender");
        assert_eq!(named.name.as_deref(), Some("Omniglot"));
        assert_eq!(named.address, "noreply@example.com");
        assert_eq!(
            sender("noreply@example.com").map(|from| from.name),
            Ok(None)
        );
        for wrong in [
            "",
            "Omniglot",
            "Omniglot <>",
            "A\r\nBcc: x <a@b.example>",
            "a@b",
        ] {
            assert!(sender(wrong).is_err(), "{wrong:?}");
        }
    }
}
