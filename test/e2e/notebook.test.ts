/** A real Jupyter from PyPI, opened in the system's Chromium through the gateway. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, ROOT, startJourney, until, type Journey } from '../support/journey.ts';
import { programsAreHere } from '../support/programs.ts';
import { insidePython } from '../support/python.ts';

const browserIsHere = programsAreHere({ chromium: 'chromium' });
const bin = insidePython();
const SCREENSHOTS = path.join(ROOT, '.cache/screenshots');

let journey: Journey;
let browser: Browser | undefined;

beforeAll(async () => {
  journey = await startJourney({ args: ['--resources', 'cpus=4,mem=8Gi'] });
  mkdirSync(SCREENSHOTS, { recursive: true });
  if (browserIsHere) browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
});
afterAll(async () => {
  await browser?.close();
  await journey.close();
});

async function notebook(...options: string[]): Promise<{ job: string; url: string }> {
  const PATH = `${bin ?? ''}:/usr/bin:/bin`;
  const started = await journey.drover('notebook', '--json', '--env', `PATH=${PATH}`, ...options);
  expect([started.code, started.stderr]).toEqual([0, '']);
  return JSON.parse(started.stdout) as { job: string; url: string };
}

test.runIf(bin)('runs a cell in the browser, and lets nobody in without the link', async () => {
  if (browser === undefined) return;
  const { job, url } = await notebook('--idle-stop', '90m');
  // Jupyter looks once a minute, so the end itself is not waited for here.
  const { stdout, stderr } = await journey.drover('logs', job);
  expect(stdout + stderr).toContain('Will shut down after 5400 seconds with no kernels');
  const base = `/proxy/${job}.0:notebook-${job}/`;
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
  const page = await context.newPage();
  await page.goto(url);
  expect(page.url()).not.toContain('code=');
  await runCell(page);
  await page.screenshot({ path: path.join(SCREENSHOTS, 'notebook.png') });

  const cookies = await context.cookies();
  expect(cookies.find(({ name }) => name === 'drover_proxy')).toMatchObject({
    httpOnly: true,
    sameSite: 'Lax',
    path: base,
  });
  // The link is spent; without the cookie there is nothing; a token of the API works as well.
  const spent = await fetch(url, { redirect: 'manual' });
  expect(spent.status).toBe(401);
  expect((await call(journey.url, `GET ${base}api`)).body).toMatchObject({
    code: 'UNAUTHENTICATED',
  });
  const { token } = journey;
  expect((await call(journey.url, `GET ${base}api`, undefined, { token })).body).toHaveProperty(
    'version',
  );
  const stranger = await fetch(`${journey.url}${base}api`, {
    headers: { cookie: 'drover_proxy=guessed' },
  });
  expect(stranger.status).toBe(401);

  const again = await journey.drover('notebook', '--json', job);
  expect(again.code).toBe(0);
  await journey.client.cancelJob(job);
  await journey.ended(job);
  const late = await page.goto(`${journey.url}${base}api`);
  expect([404, 409, 503]).toContain(late?.status());
  await context.close();
});

/** What a person does: a new notebook, a line, run it; again while the page is still loading. */
async function runCell(page: Page): Promise<void> {
  await page.locator('.jp-LauncherCard', { hasText: 'Python 3' }).first().click();
  const cell = page.locator('.jp-Notebook .jp-CodeCell .cm-content').first();
  const output = page.locator('.jp-OutputArea-output').first().filter({ hasText: / 42$/m });
  for (let patience = 9; ; patience--) {
    await cell.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('import os; print(os.environ["DROVER_JOB_ID"], 6 * 7)');
    await page.keyboard.press('Control+Enter');
    try {
      await output.waitFor({ timeout: 10_000 });
      return;
    } catch (error) {
      if (patience === 0) throw error;
    }
  }
}

test.runIf(bin)('wrong input: an array, another job, one that cannot start', async () => {
  const [array, broken] = await Promise.all([
    journey.drover('notebook', '--array', '0-3'),
    journey.drover(
      'notebook',
      '--env',
      `PATH=${bin ?? ''}:/usr/bin:/bin`,
      '--',
      '--no-such-option',
    ),
  ]);
  expect([array.code, array.stderr]).toEqual([2, expect.stringContaining('one task')]);
  expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining('drover logs')]);
  const other = await journey.submit({ command: ['sleep', '100'] });
  const none = await journey.drover('notebook', other);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('is no notebook')]);
  const { token } = journey;
  for (const endpoint of ['', 'x', `${other}:`, `${other}:0`, `${other}:70000`, `${other}:../x`]) {
    const { status } = await call(journey.url, 'POST /v1/proxy/logins', { endpoint }, { token });
    expect([endpoint, status]).toEqual([endpoint, 400]);
  }
  await until('nothing listens', async () => {
    const { status, body } = await call(journey.url, `GET /proxy/${other}.0:1/`, undefined, {
      token,
    });
    return status === 503 && /nothing listens on port 1/.test(String(body['detail']));
  });
});
