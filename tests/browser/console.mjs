// Walks through the console as people do, in Chromium: every page in both themes, on desktop and phone, with and without
// JavaScript. Errors of the content security policy, findings of axe and pages that are too wide for a phone fail it.

import assert from "node:assert/strict";
import { browser, lookAt, openPage, problems } from "./browser.mjs";

const [link, folder] = process.argv.slice(2);
const base = new URL(link).origin;
const gateway = "http://127.0.0.1:8080";
const password = "a long password";

const page = await openPage(base, { permissions: ["clipboard-read", "clipboard-write"] });
const look = (name) => lookAt(page, folder, name);

/** Makes a key with the form, and returns its secret. */
async function makeKey(label, fill) {
  await page.goto(`${base}/accounts/demo/new-key`);
  await page.fill('input[name="label"]', label);
  await fill();
  await page.click("form.card button.primary");
  return page.textContent("#secret");
}

async function ask(secret, path, body) {
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const response = await fetch(gateway + path, { method: "POST", headers, body: JSON.stringify(body) });
  await response.text();
  return response.status;
}

await page.goto(`${base}/keys`);
assert.equal(page.url(), `${base}/sign-in?next=%2Fkeys`);
await look("sign-in");
await page.goto(`${base}/sign-up`);
await look("sign-up");

// The translation explorer is for everybody: an example, a body of one's own, and the link that shows it again.
await page.goto(`${base}/translate`);
await look("translate");
assert(await page.isVisible(".line.dropped"));
await page.click(".explorer summary");
await look("translate-options");
await page.selectOption('select[name="kind"]', "stream");
await page.selectOption('select[name="from"]', "messages");
await page.selectOption('select[name="to"]', "responses");
await page.click(".explorer button.primary");
assert(await page.isVisible('.marked:has-text("response.completed")'), "an example follows the format");
await look("translate-stream");
const pasted = { model: "m", top_k: 3, max_tokens: 20, messages: [{ role: "user", content: "<b>Grüße</b>" }] };
await page.goto(`${base}/translate?from=messages&to=chat`);
await page.fill('textarea[name="input"]', JSON.stringify(pasted));
await page.click(".explorer button.primary");
await page.click('button[data-copy="view-link"]');
const shared = await page.evaluate(() => navigator.clipboard.readText());
assert(shared.startsWith(`${base}/translate?`) && !shared.split("#")[0].includes("top_k"));
await page.goto("about:blank");
await page.goto(shared);
await page.waitForSelector('.reports code:text("top_k")');
assert.equal(await page.inputValue('textarea[name="input"]'), JSON.stringify(pasted));
assert(await page.isVisible('.marked:has-text("<b>Grüße</b>")'));
await page.fill('textarea[name="input"]', JSON.stringify({ ...pasted, max_tokens: "many" }));
await page.click(".explorer button.primary");
await look("translate-refused");

// So is the catalog of the demo.
await page.goto(`${base}/models`);
await look("models");
await page.click('.card:has(h2:text-is("demo-messages")) summary');
await look("models-losses");
await page.click('.card:has(h2:text-is("demo-messages")) .clients a');
assert(page.url().startsWith(`${base}/translate?from=`));

// And the scorecards of gateways.
await page.click('main a[href="/fidelity"]');
await look("fidelity");
assert.equal(await page.locator(".scorecard").count(), 3);
assert.equal(await page.locator("#gateway-1 td.good").count(), 16);

// The link of the greeting works once.
await page.goto(link);
await look("setup");
await page.fill('input[name="password"]', password);
await page.click("main button.primary");
assert.equal(page.url(), `${base}/`);
await look("home-empty");
await page.goto(`${base}/keys`);
await look("no-keys");
assert.equal((await page.goto(link)).status(), 410);

// Keys: made, copied, used, seen.
await page.goto(`${base}/accounts/demo/new-key`);
await look("new-key");
const secret = await makeKey("laptop", () => page.fill('input[name="cap"]', "2"));
await look("secret");
await page.click("button[data-copy]");
await page.waitForFunction(() => document.querySelector("button[data-copy]").textContent === "Copied");
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
const limited = await makeKey("nightly batch", async () => {
  await page.fill('input[name="cap"]', "0.5");
  await page.selectOption('select[name="reset"]', "daily");
  await page.fill('textarea[name="models"]', "demo-image\ndemo-chat");
  await page.fill('input[name="requests_per_minute"]', "600");
  await page.fill('input[name="expires"]', "2099-06-30");
});
await makeKey("research", async () => {
  assert(await page.isVisible('input[name="cap"]'));
  await page.check("#quota-unlimited");
  assert(!(await page.isVisible('input[name="cap"]')), "Unlimited Quota has no amount");
});
const picture = { model: "demo-image", prompt: "a lighthouse at dawn", size: "1024x1024" };
for (let number = 0; number < 8; number++) assert.equal(await ask(secret, "/v1/images/generations", picture), 200);
for (let number = 0; number < 4; number++) await ask(limited, "/v1/images/generations", picture);
assert.equal(await ask(limited, "/v1/messages", { model: "demo-messages", max_tokens: 9, messages: [] }), 403);
await page.waitForTimeout(2000);
await page.goto(`${base}/`);
await look("home");
assert(await page.isVisible('.errors code'), "the refused request is among the errors");
await page.selectOption('select[name="model"]', "demo-messages");
await page.click('#clients form button');
await page.click('summary:has-text("Codex")');
await page.click('button[data-copy="snippet-codex"]');
const copied = await page.evaluate(() => navigator.clipboard.readText());
assert(copied.includes('model = "demo-messages"') && copied.includes(`base_url = "${gateway}/v1"`));
await look("home-codex");
await page.goto(`${base}/keys`);
await look("keys");
await page.click('a:text("nightly batch")');
await look("key");
await page.fill('input[name="cap"]', "nothing");
await page.click("form.card button.primary");
assert(await page.isVisible('[role="alert"]'));
await page.selectOption('select[name="overlap"]', "3600");
await page.click('form[action$="/rotate"] button');
const rotated = await page.textContent("#secret");
assert.notEqual(rotated, limited);

// Usage, with a request that another format answers.
const question = { model: "demo-messages", seed: 7, max_tokens: 64, messages: [{ role: "user", content: "Say hello to the lighthouse." }] };
for (let number = 0; number < 3; number++) assert.equal(await ask(secret, "/v1/chat/completions", question), 200);
await page.waitForTimeout(2000);
await page.goto(`${base}/usage`);
await look("usage");
await page.click(".chart + details summary");
await look("usage-table");
await page.click('nav[aria-label="Measure"] a:text("Requests")');
await look("usage-requests");
await page.goto(`${base}/requests`);
await look("requests");
await page.fill('input[name="model"]', "demo-messages");
await page.click(".filter button");
assert.equal(await page.locator("tbody tr").count(), 3);
await page.click("tbody a");
await look("request");
const cells = await page.locator(".bill tbody td:last-child").allTextContents();
const billed = cells.map((cell) => Number(cell.replace(/[=, ]/g, ""))).reduce((sum, cost) => sum + cost, 0);
assert(Math.abs(billed - Number(await page.textContent(".bill tfoot td:last-child"))) < 1e-12);
// The inspector: nothing yet, then a stream that another format answers and a refusal, which show up by themselves.
await page.goto(`${base}/keys`);
await page.click('a:text("laptop")');
await page.click('form[action$="/inspection"] button');
await look("inspection-empty");
const streamed = { model: "demo-messages", seed: 7, stream: true, max_tokens: 64, messages: [{ role: "user", content: "<b>Say hello</b> to the lighthouse." }] };
assert.equal(await ask(secret, "/v1/chat/completions", streamed), 200);
assert.equal(await ask(secret, "/v1/chat/completions", { ...streamed, model: "nothing" }), 404);
await page.waitForSelector('tr[data-number="2"] .badge.bad');
await page.waitForSelector('tr[data-number="1"] .badge.good');
await look("inspection");
await page.click('tr[data-number="1"] a');
assert.equal(await page.locator(".message").count(), 4);
assert(!(await page.content()).includes(secret), "the secret is redacted");
assert(await page.isVisible('.message:has-text("<b>Say hello</b>")'));
await look("captured-request");
await page.goBack();
await page.click('form[action$="/inspection/end"] button');
await page.waitForSelector(".head .badge:not(.good)");
await look("inspection-ended");

// Play: a conversation that streams, in a format of one's choice, and a refusal in the gateway's words.
await page.goto(`${base}/play`);
await look("play");
await page.selectOption('select[name="key"]', { label: "demo/laptop" });
await page.fill('input[name="model"]', "demo-messages");
await page.fill('textarea[name="message"]', "Hello <b>lighthouse</b> mock:thinking");
await page.click("form[data-play] button.primary");
await page.waitForSelector('[data-field="panes"] .wire:has-text("message_stop")');
assert.match(await page.textContent(".theirs .said:last-child"), /You said: Hello <b>lighthouse<\/b>/);
await page.selectOption('select[name="format"]', "native");
await page.fill('textarea[name="message"]', "And again");
await page.click("form[data-play] button.primary");
await page.waitForSelector('[data-field="panes"] .wire:has-text("candidates")');
assert.equal(await page.locator(".talk li").count(), 4);
await look("play-answered");
await page.fill('input[name="model"]', "nothing");
await page.fill('textarea[name="message"]', "Is anybody there?");
await page.click("form[data-play] button.primary");
await page.waitForSelector('form [role="alert"]:visible');
await look("play-refused");

await page.goto(`${base}/usage?from=2020-01-01&until=2020-01-31`);
await look("usage-nothing");

await page.goto(`${base}/config-keys`);
await look("config-keys");

// People, and an invitation that somebody takes up without JavaScript.
await page.goto(`${base}/people`);
await look("people");
for (const name of ["audit", "upstreams", "config"]) {
  await page.click(`.tabs a[href="/${name}"]`);
  assert.equal(page.url(), `${base}/${name}`);
  await look(name);
}
await page.goto(`${base}/people`);
await page.click("tbody a");
await page.check('input[name="quota"][value="cap"]');
await page.fill('input[name="cap"]', "20");
await page.click('form[action$="/cap"] button.primary');
await look("person");
await page.goto(`${base}/keys`);
await look("keys-of-account");
await page.goto(`${base}/people`);
await page.fill('input[name="email"]', "grace@example.com");
await page.click('form[action="/people/invite"] button');
await look("link");
const invitation = await page.textContent("#link");
await page.goto(`${base}/me`);
await look("me");

// Teams: an empty page, a team with a cap, and an invitation by a link.
await page.goto(`${base}/teams`);
await look("teams-none");
await page.fill('input[name="name"]', "research");
await page.click('form[action="/teams"] button');
assert.equal(page.url(), `${base}/teams/research`);
await page.check('input[name="quota"][value="cap"]');
await page.fill('input[name="cap"]', "50");
await page.click('form[action$="/cap"] button.primary');
await page.fill('input[name="person"]', "nobody-here");
await page.click('form[action$="/members"] button');
assert(await page.isVisible('[role="alert"]'));
assert.equal(await page.inputValue('input[name="person"]'), "nobody-here");
await page.fill('input[name="person"]', "hedy@example.com");
await page.click('form[action$="/members"] button');
await look("team-link");
await page.goto(`${base}/teams/research`);
await page.selectOption('form[action$="/invitations"] select', "member");
await page.click('form[action$="/invitations"] button');
const teamLink = await page.textContent("#link");
await page.goto(`${base}/accounts/research/new-key`);
await page.fill('input[name="label"]', "pipeline");
await page.click("form.card button.primary");
const teamSecret = await page.textContent("#secret");
for (let number = 0; number < 5; number++) assert.equal(await ask(teamSecret, "/v1/images/generations", picture), 200);
await page.waitForTimeout(2000);

const plain = await openPage(base, { javaScriptEnabled: false });
await plain.goto(`${base}/translate`);
await plain.fill('textarea[name="input"]', JSON.stringify(pasted));
await plain.selectOption('select[name="from"]', "messages");
await plain.selectOption('select[name="to"]', "native");
await plain.click(".explorer button.primary");
assert(await plain.isVisible('.marked:has-text("maxOutputTokens")'), "a form suffices");
await plain.goto(invitation);
await plain.screenshot({ path: `${folder}/invitation.png` });
await plain.fill('input[name="handle"]', "grace");
await plain.fill('input[name="password"]', password);
await plain.click("main button.primary");
await plain.click("main a.button.primary");
await plain.fill('input[name="label"]', "plain");
await plain.click("form.card button.primary");
assert.match(await plain.textContent("#secret"), /^sk-omniglot-/);
assert(!(await plain.isVisible("button[data-copy]")), "without JavaScript nothing copies");
const plainSecret = await plain.textContent("#secret");
assert.equal(await ask(plainSecret, "/v1/chat/completions", question), 200);
await plain.waitForTimeout(2000);
await plain.goto(`${base}/usage`);
await plain.click(".chart + details summary");
assert(await plain.isVisible(".chart + details table"), "the numbers need no script");
await plain.screenshot({ path: `${folder}/usage-plain.png`, fullPage: true });
await plain.click('.head .tabs a:text("Requests")');
await plain.click("tbody a");
assert(await plain.isVisible(".bill tfoot"));
await plain.goto(`${base}/keys`);
await plain.click('a:text("plain")');
await plain.click('form[action$="/inspection"] button');
assert.equal(await ask(plainSecret, "/v1/chat/completions", streamed), 200);
await plain.click(".inspection .actions a");
await plain.click("tbody a");
assert(await plain.isVisible('.message:has-text("message_start")'), "what was captured needs no script");
const captured = plain.url();
await plain.goto(`${base}/play`);
await plain.fill('input[name="model"]', "demo-messages");
await plain.fill('textarea[name="message"]', "Without a script");
await plain.click("form[data-play] button.primary");
assert(await plain.isVisible('.theirs:has-text("You said: Without a script")'), "the answer is in the next page");
assert.equal(await plain.locator(".message").count(), 4);
await plain.screenshot({ path: `${folder}/play-plain.png`, fullPage: true });
assert.equal((await plain.goto(`${base}/people`)).status(), 403);
await plain.screenshot({ path: `${folder}/forbidden.png` });
await plain.goto(`${base}/keys`);
await plain.click("details.menu summary");
await plain.click('form[action="/sign-out"] button');
await plain.fill('input[name="login"]', "grace");
await plain.fill('input[name="password"]', "not the password");
await plain.click("main button.primary");
assert(await plain.isVisible('[role="alert"]'));
await plain.screenshot({ path: `${folder}/wrong-login.png` });
await plain.fill('input[name="login"]', "Grace@Example.com");
await plain.fill('input[name="password"]', password);
await plain.click("main button.primary");
assert.equal(plain.url(), `${base}/`);
assert(await plain.isVisible('#snippet-curl'), "the first snippet needs no script");
await plain.goto(`${base}/keys`);
await plain.click('a:text("plain")');
await plain.click('a[href$="/alerts"]');
const plainAlerts = plain.url();
await plain.check("#to-webhook");
await plain.fill('input[name="webhook"]', "https://hooks.example.com/omniglot");
await plain.click("main button.primary");
assert.match(await plain.textContent("#secret"), /^whsec_/);
await plain.goto(`${base}/keys`);

// Grace joins the team with the account that she has, and sees its keys; its owner sees her.
await plain.goto(teamLink);
await plain.screenshot({ path: `${folder}/join-plain.png` });
await plain.click("main button.primary");
assert.equal(plain.url(), `${base}/teams/research?note=joined`);
assert(await plain.isVisible('[role="status"]'));
await plain.screenshot({ path: `${folder}/team-of-member-plain.png`, fullPage: true });
await plain.click('.tabs a:text("Keys")');
assert(await plain.isVisible('a:text("pipeline")'));
await plain.goto(`${base}/`);
assert(await plain.isVisible('a[href="/teams/research"]'), "the first page has the cap of the team");
await page.goto(`${base}/teams/research`);
await look("team");
await page.goto(`${base}/teams`);
await look("teams");
await page.goto(`${base}/accounts/research/keys`);
await look("keys-of-team");
await page.goto(`${base}/`);
await look("home-with-team");
const visitor = await openPage(base);
await page.goto(`${base}/teams/research`);
await page.click('form[action$="/invitations"] button');
await visitor.goto(await page.textContent("#link"));
await lookAt(visitor, folder, "invitation-to-team");
await visitor.click(".aside a");
await visitor.fill('input[name="login"]', "grace");
await visitor.fill('input[name="password"]', password);
await visitor.click("main button.primary");
assert.match(await visitor.textContent("h1"), /Join the team research/);
await lookAt(visitor, folder, "join");
await visitor.click("main button.primary");
assert(await visitor.isVisible("text=belongs to the team already"));

// Another language and theme, without a script.
await plain.goto(`${base}/keys`);
await plain.click("details.menu summary");
await plain.selectOption('select[name="language"]', "zh-CN");
await plain.selectOption('select[name="theme"]', "dark");
await plain.click('form[action="/preferences"] button');
assert.equal(await plain.textContent("h1"), "密钥");
assert.equal(await plain.getAttribute("html", "data-theme"), "dark");
await plain.screenshot({ path: `${folder}/keys-chinese-dark.png` });
await plain.goto(`${base}/`);
await plain.screenshot({ path: `${folder}/home-chinese-dark.png`, fullPage: true });
await plain.goto(`${base}/usage`);
await plain.screenshot({ path: `${folder}/usage-chinese-dark.png`, fullPage: true });
await plain.goto(plainAlerts);
await plain.screenshot({ path: `${folder}/alerts-chinese-dark.png`, fullPage: true });
await plain.goto(`${base}/fidelity`);
await plain.screenshot({ path: `${folder}/fidelity-chinese-dark.png`, fullPage: true });
await plain.goto(`${base}/requests`);
await plain.click("tbody a");
await plain.screenshot({ path: `${folder}/request-chinese-dark.png`, fullPage: true });

await plain.goto(`${base}/teams/research`);
await plain.screenshot({ path: `${folder}/team-chinese-dark.png`, fullPage: true });
await plain.goto(`${base}/teams`);
await plain.screenshot({ path: `${folder}/teams-chinese-dark.png`, fullPage: true });
await plain.click('a:text("research")');
await plain.click("details.danger summary");
await plain.click("details.danger button");
assert.equal((await plain.goto(`${base}/teams/research`)).status(), 404);
await page.goto(`${base}/`);
await page.click("details.menu summary");
await page.selectOption('select[name="language"]', "zh-CN");
await page.click('form[action="/preferences"] button');
await page.goto(`${base}/teams/research`);
await look("team-chinese");

await plain.goto(captured);
await plain.screenshot({ path: `${folder}/captured-request-chinese-dark.png`, fullPage: true });

await browser.close();
assert.deepEqual(problems, []);
console.log(`the console is well; screenshots are in ${folder}`);
