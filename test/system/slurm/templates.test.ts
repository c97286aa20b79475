/** The templates of deploy/slurm: each renders for every shape of batch, and bash can read it. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { slurmPool } from '../../../src/model/slurmSettings.ts';
import { renderTemplate } from '../../../src/providers/slurm/template.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../../deploy/slurm');
const TEMPLATES = readdirSync(FOLDER).map((name) => name.replace(/\.sbatch\.j2$/, ''));

const SHAPES = [
  { shape: 'one', count: 1, workers: 1 },
  { shape: 'an array', count: 3, workers: 1 },
  { shape: 'a gang', count: 1, workers: 2 },
];

test('there are four', () => {
  expect(TEMPLATES.toSorted()).toEqual(['agents', 'array', 'gang', 'job']);
});

for (const template of TEMPLATES) {
  test.each(SHAPES)(`${template}: $shape`, ({ count, workers }) => {
    const rendered = render(template, count, workers);
    if (rendered.kind === 'failed') throw new Error(rendered.reason);
    execFileSync('bash', ['-n'], { input: rendered.script });
    const { script, shown } = rendered;
    expect(script).toMatch(/^#!\/bin\/bash\n(#.*\n)*#SBATCH --no-requeue\n/);
    expect(script).toContain('secret-0');
    expect(shown).not.toContain('secret-');
    expect(script).not.toMatch(/\{[{%#]/);
    if (workers > 1) expect(script).toContain(`srun --nodes=${workers}`);
  });
}

function render(template: string, count: number, workers: number) {
  const settings = slurmPool.parse({ site: 'lab', template, agentCommand: 'drover agent' });
  const intents = Array.from({ length: count }, (_, place) => ({
    label: count > 1 ? `i1.${place}` : 'i1',
    joinToken: `secret-${place}`,
  }));
  const agent = { url: 'http://127.0.0.1:7070', authorities: '', selfDestructAfterMs: 1000 };
  const batch = {
    ...{ id: 'i1', intents, resources: null, workers, timeLimitMs: 0, noticeMs: 60_000 },
    ...{ runAs: null, name: "it's", avoid: [], target: count, agent },
  };
  const names = { pool: 'p', jobName: 'drover-c-p.i1', account: '', folder: '/f' };
  return renderTemplate({
    asked: { batch, settings, timeMs: 0, avoid: [], ...names },
    program: { batch, site: 'lab', agentCommand: 'drover agent', scratch: '', connectorUrl: '' },
    clusterId: 'c',
    options: ['--parsable'],
  });
}
