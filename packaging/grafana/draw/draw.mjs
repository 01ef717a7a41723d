// Makes a picture of a Grafana dashboard from its JSON file and a running Prometheus, without a Grafana: the parts of which
// Grafana's front end is made are npm packages. `page.jsx` draws with them; this program bundles it, opens it in Chromium,
// answers its requests, and takes the screenshot. README.md has the commands.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import puppeteer from 'puppeteer-core';

const { values: options } = parseArgs({
  options: {
    dashboard: { type: 'string' },
    prometheus: { type: 'string', default: 'http://127.0.0.1:9090' },
    output: { type: 'string', default: 'dashboard.png' },
    minutes: { type: 'string', default: '15' },
    // Seconds since 1970, so that a picture can be made again while Prometheus still has the data.
    end: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
    // The scrape interval that Grafana's data source would be told: $__rate_interval is at least four of them.
    'scrape-interval': { type: 'string', default: '15s' },
    theme: { type: 'string', default: 'dark' },
    width: { type: 'string', default: '1600' },
    chromium: { type: 'string', default: '/usr/bin/chromium' },
  },
});
if (!options.dashboard) throw new Error('--dashboard FILE is missing');

const folder = dirname(fileURLToPath(import.meta.url));
const bundle = await build({
  entryPoints: [join(folder, 'page.jsx')],
  bundle: true,
  write: false,
  outdir: 'unused',
  format: 'iife',
  jsx: 'automatic',
  minify: true,
  define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.ttf': 'empty' },   // of an editor that no panel has
  logLevel: 'error',
});
const outputOf = (ending) => bundle.outputFiles.find((file) => file.path.endsWith(ending))?.text ?? '';
const settings = {
  dashboard: JSON.parse(await readFile(options.dashboard, 'utf8')),
  from: (Number(options.end) - Number(options.minutes) * 60) * 1000,
  to: Number(options.end) * 1000,
  minutes: Number(options.minutes),
  scrapeInterval: options['scrape-interval'],
  theme: options.theme,
};
const html = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<style>body { margin: 0 }${outputOf('.css')}</style><div id="root"></div>
<script>window.settings = ${JSON.stringify(settings).replaceAll('<', '\\u003c')}</script><script src="/page.js"></script>`;
const folderOf = (name) => dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
const icons = join(folderOf('@grafana/ui'), 'dist/public/img/icons'), fonts = join(folderOf('@fontsource/inter'), 'files');

// No server is started: the browser's requests to this invented host are answered here.
async function answer(address) {
  const { pathname, search } = new URL(address);
  if (pathname === '/') return { contentType: 'text/html', body: html };
  if (pathname === '/page.js') return { contentType: 'text/javascript', body: outputOf('.js') };
  if (pathname.startsWith('/prometheus/')) {
    const response = await fetch(options.prometheus + pathname.slice('/prometheus'.length) + search);
    return { status: response.status, contentType: 'application/json', body: await response.text() };
  }
  const icon = pathname.match(/\/img\/icons\/([a-z]+)\/([a-z0-9-]+)\.svg$/);
  if (icon) {
    // The package lacks this one of the time picker: it is the other one, turned round.
    const isTurned = icon[2] === 'angle-double-left';
    const body = await readFile(join(icons, icon[1], `${isTurned ? 'angle-double-right' : icon[2]}.svg`), 'utf8');
    return { contentType: 'image/svg+xml', body: isTurned ? body.replace('<svg', '<svg transform="rotate(180)"') : body };
  }
  const weight = { 'Inter-Regular': 400, 'Inter-Medium': 500 }[pathname.match(/\/fonts\/inter\/([A-Za-z-]+)\.woff2$/)?.[1]];
  if (weight) return { contentType: 'font/woff2', body: await readFile(join(fonts, `inter-latin-${weight}-normal.woff2`)) };
  return { status: 404, body: '' };
}

const browser = await puppeteer.launch({ executablePath: options.chromium, args: ['--no-sandbox', '--font-render-hinting=none'] });
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => console.error('page:', error.stack ?? error));
  page.on('console', (message) => ['error', 'warn'].includes(message.type()) && console.error('page:', message.text()));
  await page.setRequestInterception(true);
  page.on('request', (request) => {
    if (!request.url().startsWith('http://dashboard.picture/')) return request.continue();
    // An icon that the package does not have is left out.
    answer(request.url()).catch(() => ({ status: 404, body: '' })).then((content) => request.respond(content));
  });
  const width = Number(options.width);
  await page.setViewport({ width, height: 4000 });
  await page.goto('http://dashboard.picture/');
  await page.waitForFunction('window.pictureHeight > 0', { timeout: 60_000 });
  // The legends are measured before the plots take the space that is left.
  await page.waitForNetworkIdle();
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const height = await page.evaluate('window.pictureHeight');
  await page.screenshot({ path: options.output, clip: { x: 0, y: 0, width, height } });
  for (const line of await page.evaluate('window.report')) console.log(line);
} finally {
  await browser.close();
}
