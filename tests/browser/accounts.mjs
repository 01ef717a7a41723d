// Walks through accounts as people do, in Chromium: signing up and a lost password by mail, an identity provider, and the
// second factor. The mail server (smtp-server) and the provider (oidc-provider) are those of others.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";
import { SMTPServer } from "smtp-server";
import { browser, lookAt, openPage, problems } from "./browser.mjs";

const [base, smtpPort, identityPort, folder, gateway, upstreamPort] = process.argv.slice(2);
const password = "a long password";

// The mail server keeps what it gets.
const mails = [];
const mailServer = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData(stream, session, done) {
    let text = "";
    stream.on("data", (chunk) => { text += chunk; });
    stream.on("end", () => { mails.push({ to: session.envelope.rcptTo[0].address, text }); done(); });
  },
});
await new Promise((resolve) => mailServer.listen(Number(smtpPort), "127.0.0.1", resolve));

async function mailTo(address) {
  for (let tries = 0; tries < 200; tries++) {
    const at = mails.findIndex((mail) => mail.to === address);
    if (at >= 0) return mails.splice(at, 1)[0].text;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`no mail to ${address}`);
}

// The upstream of the gateway; a request costs what the config says.
const upstream = createServer((request, response) => {
  request.resume();
  response.setHeader("content-type", "application/json");
  const choices = [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }];
  response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "m", choices, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }));
});
upstream.listen(Number(upstreamPort), "127.0.0.1");

async function linkTo(address) {
  // Long lines are cut by quoted-printable, and put together again by every mail program.
  const text = (await mailTo(address)).replaceAll("=\r\n", "").replaceAll("=3D", "=");
  return text.match(/https?:\S+/)[0];
}

const page = await openPage(base);
const look = (name) => lookAt(page, folder, name);

// The identity provider lets everybody in who says a name.
const issuer = `http://127.0.0.1:${identityPort}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: "omniglot", client_secret: "a-secret-of-the-console", redirect_uris: [`${base}/identity/corp/callback`] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "preferred_username"] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: "Grace Hopper", preferred_username: id }),
  }),
});
const identityServer = provider.listen(Number(identityPort), "127.0.0.1");

/** The code that an app shows for a secret, some steps from now. */
function code(secret, steps = 0) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  let bits = "";
  for (const letter of secret.replaceAll(" ", "")) bits += letters.indexOf(letter).toString(2).padStart(5, "0");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30000) + steps));
  const hash = createHmac("sha1", key).update(counter).digest();
  const number = hash.readUInt32BE(hash[19] & 15) & 0x7fffffff;
  return String(number % 1000000).padStart(6, "0");
}

async function submit() {
  await page.click("main button.primary");
}

async function signOut() {
  await page.goto(`${base}/keys`);
  await page.click("details.menu summary");
  await page.click('form[action="/sign-out"] button');
}

// Sign up by mail.
await page.goto(`${base}/sign-in`);
await look("sign-in-with-provider");
await page.click('a[href="/sign-up"]');
await look("sign-up-mail");
await page.fill('input[name="email"]', "ada@elsewhere.example");
await submit();
assert(await page.isVisible('[role="alert"]'));
await page.fill('input[name="email"]', "ada@example.com");
await submit();
await look("sent");
await page.goto(await linkTo("ada@example.com"));
await look("finish");
await page.fill('input[name="handle"]', "ada");
await page.fill('input[name="password"]', password);
await submit();
assert.equal(page.url(), `${base}/`);

// Another address, which is proven.
await page.goto(`${base}/me`);
await page.fill('input[name="email"]', "lovelace@example.com");
await page.click('form[action="/me"] button.primary');
await page.goto(await linkTo("lovelace@example.com"));
await look("verify");
await submit();
assert.equal(await page.inputValue('input[name="email"]'), "lovelace@example.com");

// An alert to oneself, which comes when so much of the cap is spent, and one to a webhook.
await page.goto(`${base}/accounts/ada/new-key`);
await page.fill('input[name="label"]', "laptop");
await page.fill('input[name="cap"]', "1");
await submit();
const key = await page.textContent("#secret");
await page.click("main a.primary");
await page.click('a[href$="/alerts"]');
await look("alerts-none");
await submit();
await page.click('.alert form[action$="/test"] button');
assert(await page.isVisible(".alert .badge.good"));
assert.match(await mailTo("lovelace@example.com"), /Test message/);
await page.check("#to-webhook");
await page.fill('input[name="webhook"]', "https://127.0.0.1/hook");
await submit();
assert(await page.isVisible('[role="alert"]'), "a webhook is public");
await page.fill('input[name="webhook"]', "https://hooks.example.com/services/omniglot");
await page.fill('form.targets input[name="percents"]', "100");
await submit();
await look("alert-secret");
assert.match(await page.textContent("#secret"), /^whsec_/);
await page.click("main a.primary");
const asked = await fetch(`${gateway}/v1/chat/completions`, {
  method: "POST",
  headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
  body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hello" }] }),
});
assert.equal(asked.status, 200);
assert.match(await mailTo("lovelace@example.com"), /80 %/);
await page.waitForTimeout(500);
await page.reload();
assert(await page.isVisible('.alert .badge.good:has-text("80 %")'));
await look("alerts");
await page.click(".alert summary");
await page.fill('.alert details input[name="percents"]', "90 95");
await page.click('.alert details button');
assert(await page.isVisible('.alert .badge:text-is("95 %")'));
await page.click('.alert form[action$="/delete"] button');
assert.equal(await page.locator(".alert").count(), 1);
await page.goto(`${base}/accounts/ada/alerts`);
await look("alerts-of-account");
await page.goto(`${base}/me`);

// The second factor, and signing in with it.
await page.click('form[action="/me/second-factor/begin"] button');
await look("second-factor");
const secret = await page.textContent("#totp-secret");
await page.fill('input[name="code"]', "000000");
await submit();
await page.fill('input[name="code"]', code(secret));
await submit();
await look("recovery");
const recovery = (await page.textContent("#codes")).trim().split(/\s+/);
assert.equal(recovery.length, 10);
await page.goto(`${base}/me`);
await look("me-with-all");
await signOut();
await page.fill('input[name="login"]', "ada");
await page.fill('input[name="password"]', password);
await submit();
await look("code");
await page.fill('input[name="code"]', code(secret, 1));
await submit();
assert.equal(page.url(), `${base}/`);
await signOut();

// A lost password, with a recovery code in place of the phone.
await page.click('a[href="/forgot"]');
await look("forgot");
await page.fill('input[name="login"]', "ada");
await submit();
await page.goto(await linkTo("lovelace@example.com"));
await look("reset");
await page.fill('input[name="password"]', "another password");
await submit();
await page.fill('input[name="code"]', recovery[0]);
await submit();
assert.equal(page.url(), `${base}/`);
assert.match(await mailTo("lovelace@example.com"), /Your password was changed/);
await signOut();

// Somebody comes by the identity provider, without JavaScript on our pages or with it.
await page.goto(`${base}/sign-in`);
await page.click(".providers a");
await page.waitForURL(`${issuer}/**`);
await page.fill('input[name="login"]', "grace");
await page.fill('input[name="password"]', "anything");
await page.click('button[type="submit"]');
await page.click('button[type="submit"]');
await page.waitForURL(`${base}/welcome`);
await look("welcome");
await submit();
assert.equal(page.url(), `${base}/`);
await page.goto(`${base}/me`);
await look("me-of-provider");
await page.goto(`${base}/confirm?next=/me`);
await look("confirm-with-provider");
await signOut();
await page.click(".providers a");
await page.waitForURL(`${base}/`);

await browser.close();
identityServer.close();
identityServer.closeAllConnections();
mailServer.close();
upstream.close();
assert.deepEqual(problems, []);
console.log(`accounts are well; screenshots are in ${folder}`);
process.exit(0);
