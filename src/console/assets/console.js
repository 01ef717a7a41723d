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
