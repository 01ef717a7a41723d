//! The texts of the page with the scorecards of gateways.

/// What the page with the scorecards says.
pub struct FidelityTexts {
    pub title: &'static str,
    pub lead: &'static str,
    pub gateway: &'static str,
    pub scored: &'static str,
    pub pairs: &'static str,
    pub whole: &'static str,
    pub of_16: &'static str,
    pub compare: &'static str,
    pub method: &'static str,
    pub method_runs: &'static str,
    pub method_cells: &'static str,
    pub method_losses: &'static str,
    pub method_others: &'static str,
    pub this_gateway: &'static str,
    pub table: &'static str,
    pub client: &'static str,
    pub not_offered: &'static str,
    pub of: &'static str,
    pub lost_json: &'static str,
    pub lost_streams: &'static str,
    pub biggest: &'static str,
    pub runs: &'static str,
    pub all: &'static str,
    pub nothing: &'static str,
    pub opinions: &'static str,
    pub commands: &'static str,
    pub link: &'static str,
}

pub(super) const ENGLISH: FidelityTexts = FidelityTexts {
    title: "Fidelity",
    lead: "What gateways lose in translation: this one, and others that were measured in the same way.",
    gateway: "Gateway",
    scored: "Scored on",
    pairs: "Pairs",
    whole: "Runs that lose nothing",
    of_16: "{} of 16",
    compare: "The shares of two gateways compare well only where they offer the same pairs: a pair that is not offered does not count.",
    method: "How it is measured",
    method_runs: "Clients of four formats talk through the gateway to a scripted upstream of each of the four, as JSON and as streams, in {} scenarios. Each is about one matter.",
    method_cells: "A cell is the share of the runs of a pair in which nothing was lost, changed or added: clients are in the rows, upstreams in the columns.",
    method_losses: "The upstream refuses what the vendor's would, and a request that is refused is a loss. What formats or gateways may see differently is not counted, for every gateway alike.",
    method_others: "Other gateways have the config that their documentation says, retries turned off, and the settings that keep more where they have such. The command omniglot score measures any gateway; docs/fidelity.md in its repository has the full report.",
    this_gateway: "this gateway",
    table: "Runs of {} that lose nothing, by the formats of client and upstream",
    client: "client \\ upstream",
    not_offered: "not offered",
    of: "{} of {}",
    lost_json: "JSON −{}",
    lost_streams: "streams −{}",
    biggest: "The biggest losses",
    runs: "{} runs",
    all: "all",
    nothing: "Nothing was lost.",
    opinions: "{} differences of opinion are not counted.",
    commands: "The commands that made this result",
    link: "How it compares with other gateways",
};

pub(super) const CHINESE: FidelityTexts = FidelityTexts {
    title: "保真度",
    lead: "各网关在格式转换中丢失了什么：本网关，以及以相同方式测量的其他网关。",
    gateway: "网关",
    scored: "测量日期",
    pairs: "格式组合",
    whole: "无损失的运行",
    of_16: "{}（共 16 种）",
    compare: "只有在两个网关提供相同的格式组合时，比例才便于比较：未提供的组合不计入。",
    method: "测量方法",
    method_runs: "四种格式的客户端通过网关，分别与四种格式的脚本化上游对话，采用 JSON 和流式两种方式，共 {} 个场景。每个场景只针对一件事。",
    method_cells: "单元格为该组合中没有任何丢失、更改或添加的运行所占的比例：行为客户端，列为上游。",
    method_losses: "上游会拒绝供应商会拒绝的请求，被拒绝的请求计为损失。不同格式或网关可能有不同看法之处，对所有网关都不计入。",
    method_others: "其他网关按其文档配置，关闭重试，并启用能保留更多内容的设置。命令 omniglot score 可测量任何网关；完整报告见其代码库中的 docs/fidelity.md。",
    this_gateway: "本网关",
    table: "{} 无损失的运行，按客户端与上游的格式",
    client: "客户端 \\ 上游",
    not_offered: "未提供",
    of: "{} / {}",
    lost_json: "JSON −{}",
    lost_streams: "流式 −{}",
    biggest: "最主要的损失",
    runs: "{} 次运行",
    all: "全部",
    nothing: "没有任何损失。",
    opinions: "另有 {} 处看法差异，不计入。",
    commands: "得出此结果的命令",
    link: "与其他网关的比较",
};

/// The losses of the published results, and their words in Chinese.
const LOSSES: [(&str, &str); 12] = [
    (
        "`retry-after` does not reach the client",
        "`retry-after` 未到达客户端",
    ),
    (
        "Images and documents of native clients do not reach upstreams of other formats",
        "native 客户端的图片和文档未到达其他格式的上游",
    ),
    (
        "The effort, one chosen tool, seed and penalties of native clients, and fields in their older spelling",
        "native 客户端的推理强度、指定的单个工具、seed 和惩罚参数，以及旧拼写的字段",
    ),
    (
        "Citations are lost, or name another part of the text where it has characters of several bytes",
        "引用丢失，或在含多字节字符的文本中指向了别处",
    ),
    (
        "Calls of native clients that have no id get the name of the function as one, so that two calls of a function cannot be told apart; text beside a result comes before it",
        "native 客户端没有 id 的调用以函数名为 id，因此同一函数的两次调用无法区分；结果旁边的文本被移到结果之前",
    ),
    (
        "Tokens: streams for native clients count none, and cached tokens and those of reasoning are missing",
        "token：发给 native 客户端的流不计数，缓存和推理的 token 缺失",
    ),
    (
        "Results of calls go to native upstreams under the name `gateway-tool-filler-name`, so that only their order tells which call each answers",
        "调用结果以 `gateway-tool-filler-name` 之名发给 native 上游，只能凭顺序判断各自回答的是哪次调用",
    ),
    (
        "Text of the assistant beside its calls, and signatures of reasoning, on the way to native upstreams",
        "发往 native 上游时，助手在调用旁的文本以及推理的签名",
    ),
    (
        "The effort, and that one call at a time is wanted, on the way to messages upstreams; penalties on the way to native ones",
        "发往 messages 上游时的推理强度，以及每次只要一个调用的要求；发往 native 上游时的惩罚参数",
    ),
    (
        "What the upstream sends that is no JSON, and errors inside a 200, are passed on or skipped",
        "上游发来的非 JSON 内容，以及 200 响应中的错误，被原样传递或跳过",
    ),
    (
        "Finish reasons: calls of native upstreams and refusals of messages upstreams look like the end of a text",
        "结束原因：native 上游的调用和 messages 上游的拒绝看起来像文本正常结束",
    ),
    (
        "A stream that breaks off ends as if nothing were missing, and one that hangs has no timeout",
        "中断的流像没有缺失一样结束，挂起的流没有超时",
    ),
];

/// A loss of the published results in Chinese.
pub fn loss_in_chinese(what: &str) -> Option<&'static str> {
    let known = LOSSES.iter().find(|(english, _)| *english == what);
    known.map(|(_, chinese)| *chinese)
}
