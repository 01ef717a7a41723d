// The browser of these tests, and how they look at a page.

import { mkdirSync } from "node:fs";
import AxeBuilder from "@axe-core/playwright";
import { chromium } from "playwright-core";

const desktop = { width: 1280, height: 860 };
const phone = { width: 390, height: 844 };

/** Errors of the content security policy, findings of axe, and pages that are too wide for a phone. */
export const problems = [];
export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

/** Opens a page, and notes what the browser complains of on pages of the console, except for statuses that a test asks for. */
export async function openPage(base, options) {
  const context = await browser.newContext({ viewport: desktop, ...options });
  const page = await context.newPage();
  page.on("console", (message) => {
    const isProblem = ["error", "warning"].includes(message.type()) && page.url().startsWith(base);
    if (isProblem && !message.text().includes("the server responded with a status of")) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  return page;
}

/** Looks at a page in both themes and both sizes, and leaves screenshots in a folder. */
export async function lookAt(page, folder, name) {
  mkdirSync(folder, { recursive: true });
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(desktop);
    await page.waitForTimeout(250);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage: true });
    const { violations } = await new AxeBuilder({ page }).analyze();
    for (const { id, nodes } of violations) problems.push(`${name}, ${colorScheme}: ${id} at ${nodes.map((node) => node.target)}`);
    await page.setViewportSize(phone);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > phone.width) problems.push(`${name} is ${width} pixels wide on a phone`);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}-phone.png`, fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(desktop);
}
