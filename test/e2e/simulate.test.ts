/** The real `./drover simulate`: wired in, needs no server, and writes what it was asked for. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');

function drover(...args: string[]) {
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' };
  return spawnSync(path.join(ROOT, 'drover'), args, { cwd: ROOT, env, encoding: 'utf8' });
}

const EXAMPLES = 'examples/simulate';
const LAB = [`${EXAMPLES}/lab.yaml`, '--fleet', `${EXAMPLES}/fleet.yaml`];

test('the commands of the guide work as they stand there', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'drover-simulate-'));
  try {
    const svg = path.join(folder, 'lab.svg');
    const drawn = drover('simulate', ...LAB, '--svg', svg);
    expect(drawn).toMatchObject({ status: 0, stderr: '' });
    expect(drawn.stdout).toContain('devices in use');
    expect(readFileSync(svg, 'utf8')).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
    const json = drover('simulate', ...LAB, '--against', `${EXAMPLES}/larger.yaml`, '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({ runs: [{ name: 'fleet.yaml' }, {}] });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('it is in the help, and a wrong file is told in full', () => {
  expect(drover('help').stdout).toMatch(/simulate {2,}\S/);
  const wrong = drover('simulate', 'README.md', '--fleet', `${EXAMPLES}/fleet.yaml`);
  expect(wrong.status).toBe(2);
  expect(wrong.stderr).toMatch(
    /^error INVALID_ARGUMENT: README.md does not fit:\n {2}\S[\s\S]*try: /,
  );
});
