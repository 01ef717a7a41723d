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
    link.textContent = request.time.replace("T", " ").replace("Z", " UTC");
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
      field(shown, "cost").textContent = request.cost ?? "";
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
