/** The reference page in the system's Chromium: whole, readable, and content with itself. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import axe from 'axe-core';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../../support/journey.ts';
import { programsAreHere } from '../../support/programs.ts';
import { operationsOf } from './operations.ts';
import type { ApiWorld } from './world.ts';

const browserIsHere = programsAreHere({ chromium: 'chromium' });
const SCREENSHOTS = path.join(ROOT, '.cache/screenshots');
const DESK = { width: 1280, height: 900 };
const LOOKS = [
  { name: 'desk', viewport: DESK, colorScheme: 'dark' },
  { name: 'phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
] as const;

export function referenceSuite(worldOf: () => ApiWorld): void {
  describe('the reference page', () => {
    let browser: Browser | undefined;
    beforeAll(async () => {
      mkdirSync(SCREENSHOTS, { recursive: true });
      if (browserIsHere) browser = await chromium.launch({ executablePath: '/usr/bin/chromium' });
    });
    afterAll(() => browser?.close());

    test('tells of every operation, finds one, and takes nothing from elsewhere', async () => {
      const { server, document } = worldOf();
      const answer = await fetch(`${server.url}/reference`);
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
      if (browser === undefined) return;
      const page = await browser.newPage({ viewport: DESK });
      const foreign: string[] = [];
      const complaints: string[] = [];
      page.on('request', (request) => {
        if (!request.url().startsWith(server.url)) foreign.push(request.url());
      });
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(`${server.url}/reference`);
      const ids = operationsOf(document).map(({ operation }) => operation.operationId);
      const shown = await page.evaluate<string[]>(IDS);
      expect(shown.toSorted()).toEqual(ids.toSorted());
      await page.keyboard.press('/');
      await page.keyboard.type('checkpoints jobs:manage');
      const found = await page.evaluate<string[]>(VISIBLE_IDS);
      expect(found).toEqual(['requestCheckpoint']);
      expect(page.url()).toContain('?q=checkpoints');
      await page.fill('#search', 'nothing has this');
      expect(await page.locator('#nothing').isVisible()).toBe(true);
      expect([foreign.filter((url) => !url.startsWith('data:')), complaints]).toEqual([[], []]);
      await page.close();
    });

    test('is readable on a desk and on a phone, by day and by night', async () => {
      if (browser === undefined) return;
      // Axe takes seconds for each: two of the four, and of the page a part, unfolded.
      for (const { name, viewport, colorScheme } of LOOKS) {
        const page = await browser.newPage({ viewport, colorScheme });
        await page.goto(`${worldOf().server.url}/reference`);
        await page.screenshot({ path: path.join(SCREENSHOTS, `reference-${name}.png`) });
        expect([name, await page.evaluate<boolean>(TOO_WIDE)]).toEqual([name, false]);
        await page.goto(`${worldOf().server.url}/reference?q=budget`);
        await page.evaluate(UNFOLD);
        expect([name, await page.evaluate<boolean>(TOO_WIDE)]).toEqual([name, false]);
        expect(await hurdles(page)).toEqual([]);
        await page.screenshot({ path: path.join(SCREENSHOTS, `reference-${name}-unfolded.png`) });
        await page.close();
      }
    });
  });
}

/** Run in the page, where there is a document. */
const IDS = "[...document.querySelectorAll('article:not(.schema)')].map(({ id }) => id)";
const VISIBLE_IDS =
  "[...document.querySelectorAll('article:not(.schema)')]" +
  '.filter((one) => one.offsetParent !== null).map(({ id }) => id)';
const TOO_WIDE = 'document.documentElement.scrollWidth > innerWidth';
const UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true";
const RUN_AXE = 'axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)';

/** What keeps somebody from using it, by axe's own measure. */
async function hurdles(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const violations = await page.evaluate<axe.Result[]>(RUN_AXE);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}
