//! The texts of the first page.

/// What the first page says.
pub struct HomeTexts {
    pub title: &'static str,
    pub lead: &'static str,
    pub today: &'static str,
    pub errors: &'static str,
    pub errors_hint: &'static str,
    pub caps: &'static str,
    pub clients: &'static str,
    pub clients_lead: &'static str,
    pub key_hint: &'static str,
}

pub(super) const ENGLISH: HomeTexts = HomeTexts {
    title: "Home",
    lead: "What is left, how today went, and how to set up a client.",
    today: "Today",
    errors: "Errors",
    errors_hint: "At this gateway, since the day began or it started. Days are those of UTC.",
    caps: "Spent and left",
    clients: "Set up a client",
    clients_lead: "Every client can use every model, whoever serves it. Choose one of your models, and copy what your client needs.",
    key_hint: "The secret of one of your keys is in a variable:",
};

pub(super) const CHINESE: HomeTexts = HomeTexts {
    title: "首页",
    lead: "剩余额度、今日情况，以及如何设置客户端。",
    today: "今日",
    errors: "错误",
    errors_hint: "本网关自当日开始或启动以来的数量。日期以 UTC 为准。",
    caps: "已用与剩余",
    clients: "设置客户端",
    clients_lead: "每个客户端都能使用每个模型，无论由谁提供。选择您的一个模型，然后复制客户端所需的内容。",
    key_hint: "请把您的某个密钥放入变量：",
};
