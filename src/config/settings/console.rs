//! The console: the web pages where people sign in and make keys.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Amount, Listen, Secret};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleConfig {
    pub listen: Listen,
    /// Where browsers reach it; without a slash at its end.
    pub public_url: String,
    /// Where clients reach the gateway, for the commands that people are shown. Absent: the first of its listeners.
    pub gateway_url: Option<String>,
    pub sign_up: SignUp,
    /// Who may say in `x-forwarded-for` where a request comes from.
    pub trusted_proxies: Vec<IpNetwork>,
    pub session: SessionLimits,
    pub member_keys: MemberKeys,
    /// Absent: the console sends none.
    pub mail: Option<MailConfig>,
    pub identity: Vec<IdentityConfig>,
    /// Who is an administrator, by an address that an identity provider has proven; in lower case.
    pub admins: Vec<String>,
    pub inspector: InspectorAccess,
}

/// Who may see what the requests of a key were and became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectorAccess {
    /// The owners of the key's account.
    Owners,
    /// Nobody.
    Off,
}

/// Who may make an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignUp {
    /// Nobody; accounts are made on the command line.
    Closed,
    /// Who has an invitation.
    Invite,
    /// Who has an address of one of these domains, and can prove it; in lower case.
    Domains(Vec<String>),
    /// Everybody.
    Open,
}

impl SignUp {
    /// Tells whether an address in lower case may be that of an account that somebody makes.
    pub fn accepts(&self, email: &str) -> bool {
        match self {
            SignUp::Closed | SignUp::Invite => false,
            SignUp::Open => true,
            SignUp::Domains(domains) => {
                let domain = email.rsplit_once('@').map(|(_, domain)| domain);
                domain.is_some_and(|domain| domains.iter().any(|known| known == domain))
            }
        }
    }
}

/// An identity provider that people may sign in at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityConfig {
    /// A part of the path that the provider sends browsers back to.
    pub name: String,
    /// What people see.
    pub label: String,
    pub issuer: String,
    pub client_id: String,
    /// Absent: the provider knows the console as a public client.
    pub client_secret: Option<Secret>,
    /// Addresses that the provider has proven count as proven here.
    pub trust_email: bool,
    pub scopes: Vec<String>,
    /// The claim that lists groups.
    pub groups_claim: String,
    /// Its members are administrators, and nobody else who comes by this provider.
    pub admins_group: Option<String>,
}

/// How the console sends mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailConfig {
    pub from: MailSender,
    pub route: MailRoute,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailSender {
    pub name: Option<String>,
    pub address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailRoute {
    Smtp(SmtpServer),
    /// Messages are files in this folder.
    Folder(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpServer {
    pub host: String,
    pub port: u16,
    pub security: SmtpSecurity,
    pub login: Option<SmtpLogin>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// TLS from the first byte.
    Tls,
    /// STARTTLS, without which nothing is sent.
    StartTls,
    /// None, on this machine.
    Plain,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpLogin {
    pub user: String,
    pub password: Secret,
}

/// When a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// After this time without a request.
    pub idle: Duration,
    /// After this time in any case.
    pub absolute: Duration,
}

/// What members may give their own keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberKeys {
    /// How many keys a member may have.
    pub max: u64,
    pub cap_max: Amount,
    /// The cap of a key whose maker names none.
    pub cap_default: Amount,
    /// Whether a key may have no cap.
    pub unlimited: bool,
    /// Absent: keys need not expire.
    pub expires_max: Option<Duration>,
}

/// A range of addresses, such as 10.0.0.0/8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    pub address: IpAddr,
    pub bits: u32,
}

impl IpNetwork {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - self.bits;
                let differ = u64::from(own.to_bits() ^ other.to_bits());
                differ >> shift == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = own.to_bits() ^ other.to_bits();
                differ.checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl ConsoleConfig {
    /// Whether browsers reach it by https, so that its cookies need not go anywhere else.
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        for (network, bits, address, is_in) in [
            ("10.0.0.0", 8, "10.255.0.1", true),
            ("10.0.0.0", 8, "11.0.0.1", false),
            ("10.0.0.0", 8, "::ffff:10.1.2.3", true),
            ("0.0.0.0", 0, "203.0.113.9", true),
            ("127.0.0.1", 32, "127.0.0.1", true),
            ("127.0.0.1", 32, "127.0.0.2", false),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
            ("::", 0, "2001:db9::1", true),
            ("::", 0, "10.0.0.1", false),
        ] {
            let network = IpNetwork {
                address: network.parse().expect("an address"),
                bits,
            };
            let address = address.parse().expect("an address");
            assert_eq!(network.contains(address), is_in, "{network:?} {address}");
        }
    }
}
