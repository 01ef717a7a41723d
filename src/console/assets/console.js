// Copies what a button names; without this script the button stays hidden and the text can be selected.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.href ?? source.textContent);
      button.textContent = button.dataset.copied;
      setTimeout(() => { button.textContent = label; }, 2000);
    } catch {
      getSelection().selectAllChildren(source);
    }
  });
}

// An amount with all its digits, as the server writes it.
const amount = (cost) => cost?.toLocaleString("en", { maximumFractionDigits: 12, useGrouping: false });

// Fills in what a link carries behind its #, and translates it.
const linked = document.querySelector("form[data-linked]");
const carried = location.hash.match(/^#input=([\w-]+)$/);
if (linked && carried) {
  try {
    const text = atob(carried[1].replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(text, (letter) => letter.codePointAt(0));
    linked.elements.input.value = new TextDecoder().decode(bytes);
    linked.requestSubmit();
  } catch {
    // The link was cut: the page says what to do.
  }
}

// A click elsewhere and Escape close the menu.
const menu = document.querySelector("details.menu");
document.addEventListener("click", (event) => {
  if (menu?.open && !menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && menu?.open) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// Follows an inspection: its requests show up as they come, and change until they have ended.
const inspection = document.querySelector("[data-inspection]");
// A moment as the pages of the server write it.
const isEnglish = document.documentElement.lang === "en";
const clock = new Intl.DateTimeFormat(isEnglish ? "en-GB" : document.documentElement.lang, {
  dateStyle: isEnglish ? "medium" : "long", timeStyle: "medium", timeZone: "UTC",
});
const moment = (time) => `${clock.format(new Date(time))} UTC`;

if (inspection) {
  const id = inspection.dataset.inspection;
  const field = (parent, name) => parent.querySelector(`[data-field="${name}"]`);
  const row = (request) => {
    const known = inspection.querySelector(`tr[data-number="${request.number}"]`);
    if (known) return known;
    const made = document.getElementById("captured").content.querySelector("tr").cloneNode(true);
    made.dataset.number = request.number;
    const link = field(made, "link");
    link.href = `/inspections/${id}/${request.number}`;
    link.textContent = moment(request.time);
    field(inspection, "table").querySelector("tbody").append(made);
    return made;
  };
  const show = (view) => {
    field(inspection, "left").textContent = view.left;
    const state = field(inspection, "state");
    state.textContent = view.running ? inspection.dataset.running : inspection.dataset.ended;
    state.classList.toggle("good", view.running);
    field(inspection, "empty").hidden = view.requests.length > 0;
    field(inspection, "table").hidden = view.requests.length === 0;
    for (const request of view.requests) {
      const shown = row(request);
      for (const name of ["model", "format", "upstream"]) field(shown, name).textContent = request[name];
      field(shown, "cost").textContent = amount(request.cost) ?? "";
      field(shown, "took").textContent = request.took_ms?.toFixed(1) ?? "";
      if (request.status !== null) {
        const status = field(shown, "status");
        status.textContent = request.status;
        status.classList.add(request.status >= 400 ? "bad" : "good");
      }
    }
  };
  const source = new EventSource(`/api/v1/inspections/${id}`);
  source.addEventListener("inspection", (event) => show(JSON.parse(event.data)));
  source.addEventListener("end", (event) => {
    show(JSON.parse(event.data));
    source.close();
  });
}

// JSON with an indentation: every letter but the space between its parts stays as it was.
function indented(text) {
  if (!/^\s*[{[]/.test(text)) return text;
  const parts = text.match(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/gs) ?? [];
  let shown = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, 24))}`;
  parts.forEach((part, at) => {
    if (part === "{" || part === "[") {
      depth += 1;
      shown += part + (/[\]}]/.test(parts[at + 1] ?? "") && parts[at + 1].length === 1 ? "" : line());
    } else if (part === "}" || part === "]") {
      depth = Math.max(0, depth - 1);
      shown += (/^[[{]$/.test(parts[at - 1] ?? "") ? "" : line()) + part;
    } else if (part === ",") shown += part + line();
    else if (part === ":") shown += ": ";
    else shown += part;
  });
  return shown;
}

// Streams the answer of a model; without this script the form brings the whole page.
const play = document.querySelector("form[data-play]");
if (play) {
  const { elements } = play;
  const talk = play.querySelector(".talk");
  const button = play.querySelector("button.primary");
  const field = (name) => document.querySelector(`[data-field="${name}"]`);
  const say = (kind, name) => {
    const item = document.createElement("li");
    const [who, said] = [document.createElement("strong"), document.createElement("div")];
    [item.className, who.textContent, said.className] = [kind, name, "said"];
    item.append(who, said);
    talk.append(item);
    return said;
  };
  const keep = (text) => {
    const turn = document.createElement("input");
    [turn.type, turn.name, turn.value] = ["hidden", "turn", text];
    play.append(turn);
  };
  const fail = (message) => {
    field("failed").hidden = false;
    field("failed").textContent = message;
  };
  const showPanes = async (inspection) => {
    const response = await fetch(`/api/v1/inspections/${inspection}/requests/1`);
    const capture = await response.json();
    const last = capture.attempts.at(-1);
    const sides = [capture.client_request, last?.request, last?.response, capture.client_response];
    field("panes").querySelectorAll(".pane").forEach((pane, at) => {
      const wire = [...pane.querySelectorAll("pre")];
      const [head, body] = wire.length === 2 ? wire : [wire[0], document.createElement("pre")];
      pane.querySelectorAll(".hint").forEach((hint) => hint.remove());
      if (!head) return;
      head.textContent = sides[at]?.head ?? "–";
      body.className = "wire";
      body.textContent = indented(sides[at]?.body ?? "");
      head.after(body);
    });
    field("panes").hidden = false;
    field("whole").hidden = false;
    field("whole").href = `/inspections/${inspection}/1`;
  };
  const finish = async (outcome) => {
    field("result").hidden = false;
    const count = (value) => value?.toLocaleString("en") ?? "–";
    field("cost").textContent = amount(outcome.cost) ?? "–";
    field("input").textContent = count(outcome.input);
    field("output").textContent = count(outcome.output);
    field("took").textContent = outcome.took_ms === null ? "–" : `${outcome.took_ms.toFixed(1)} ms`;
    field("no-capture").hidden = outcome.inspection !== null;
    if (outcome.inspection !== null) await showPanes(outcome.inspection);
  };
  const read = async (response, answer) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let [rest, text, reasoning] = ["", "", null];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return text;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.match(/^data: ?([^\n]*)/m);
        if (!data) continue;
        const step = JSON.parse(data[1]);
        if (step.type === "text") answer.textContent = text += step.text;
        if (step.type === "failed") fail(step.message);
        if (step.type === "done") await finish(step);
        if (step.type === "reasoning") {
          if (!reasoning) {
            reasoning = document.createElement("div");
            reasoning.className = "said faint";
            answer.before(reasoning);
          }
          reasoning.textContent += step.text;
        }
      }
    }
  };
  play.addEventListener("submit", async (event) => {
    event.preventDefault();
    const message = elements.message.value.trim();
    if (!message || button.disabled) return;
    const turns = [...play.querySelectorAll('input[name="turn"]')].map((turn) => turn.value);
    const body = { key: elements.key.value, model: elements.model.value, format: elements.format.value, system: elements.system.value, turns: [...turns, message] };
    field("failed").hidden = true;
    button.disabled = true;
    const own = say("mine", play.dataset.you);
    own.textContent = message;
    const answer = say("theirs", body.model);
    let text = "";
    try {
      const headers = { "content-type": "application/json" };
      const response = await fetch("/api/v1/play", { method: "POST", headers, body: JSON.stringify(body) });
      if (response.ok) text = await read(response, answer);
      else fail((await response.json()).error.message);
    } catch (error) {
      fail(String(error));
    }
    button.disabled = false;
    if (!text && !field("failed").hidden) {
      own.parentElement.remove();
      answer.parentElement.remove();
      return;
    }
    if (!text) answer.textContent = play.dataset.empty;
    keep(message);
    keep(text);
    elements.message.value = "";
    elements.message.focus();
  });
}
