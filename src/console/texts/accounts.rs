//! The texts of accounts: what people and teams may spend.

/// What the parts of pages about an account say.
pub struct AccountTexts {
    pub cap: &'static str,
    pub cap_lead: &'static str,
    pub cap_hint: &'static str,
    pub unlimited_hint: &'static str,
    pub spending: &'static str,
    pub spending_lead: &'static str,
    pub without_owner: &'static str,
}

pub(super) const ENGLISH: AccountTexts = AccountTexts {
    cap: "Spending cap of the account",
    cap_lead: "What all keys of the account may spend together. It holds above the caps of the keys.",
    cap_hint: "Requests of any key that could go over it are refused.",
    unlimited_hint: "Only the caps of the keys hold.",
    spending: "The account",
    spending_lead: "All keys together. This cap holds above those of the keys.",
    without_owner: "Only the account of a person or a team may have a spending cap.",
};

pub(super) const CHINESE: AccountTexts = AccountTexts {
    cap: "账户的消费上限",
    cap_lead: "账户的所有密钥合计最多可花费的金额。它优先于各个密钥的上限。",
    cap_hint: "任何密钥的请求若可能超出上限，都会被拒绝。",
    unlimited_hint: "只有各个密钥的上限有效。",
    spending: "账户",
    spending_lead: "所有密钥合计。此上限优先于各个密钥的上限。",
    without_owner: "只有个人或团队的账户才能设置消费上限。",
};
