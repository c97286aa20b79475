/** Our reading of #SBATCH lines beside that of Slurm's own sbatch, which needs no cluster here. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readScript } from '../../src/cli/sbatch/settings.ts';
import { scriptWords } from '../../src/cli/sbatch/words.ts';

const EXAMPLES = path.resolve(import.meta.dirname, '../../examples/sbatch');
/** Nobody listens there: sbatch is stopped before it would ask. */
const CONFIG = [
  'ClusterName=none',
  'SlurmctldHost=localhost(127.0.0.1)',
  'SlurmctldPort=1',
  'AuthType=auth/none',
  'CredType=cred/none',
  'NodeName=n1',
  'PartitionName=gpu Nodes=n1 Default=YES',
];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'drover-slurm-'));
  writeFileSync(path.join(folder, 'slurm.conf'), `${CONFIG.join('\n')}\n`);
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Reading {
  words: string[];
  accepted: boolean;
}

/** Undefined where sbatch is not installed. */
async function slurmReads(file: string): Promise<Reading | undefined> {
  const env = { ...process.env, SLURM_CONF: path.join(folder, 'slurm.conf') };
  const child = spawn('sbatch', ['-vvv', file], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let text = '';
  let accepted = false;
  const missing = new Promise<boolean>((resolve) => {
    child.on('error', () => resolve(true));
    child.on('close', () => resolve(false));
  });
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    if (!text.includes('defined options')) return;
    accepted = true;
    child.kill('SIGKILL');
  });
  if (await missing) return undefined;
  const found = text.matchAll(/Found in script, argument "(.*)"$/gm);
  return { words: [...found].map(([, word]) => word!), accepted };
}

function weRead(script: string): Reading {
  const words = scriptWords(script, 'job.sh').map(({ text }) => text);
  try {
    readScript(script, 'job.sh');
    return { words, accepted: true };
  } catch {
    return { words, accepted: false };
  }
}

const ODD = [
  `#SBATCH --job-name my\\ job`,
  `#SBATCH -J'x y' --comment="a \\"b\\" # c" --mem=4G#x`,
  '#SBATCH--time=UNLIMITED\n \t\n#SBATCH -N 2-4 -n8 -pgpu --exclusive=user',
  '#SBATCH --nice -HQ\n##SBATCH -t 1\n # x\n#SBATCH --no-kill -c4\necho\n#SBATCH --wrong',
  '#SBATCH --no-such-option=1',
  '#SBATCH --mem',
  '#SBATCH --ntasks-per-nod=2',
  '#SBATCH stray',
  '#SBATCH --signal=B:USR1@90 --array=1-9:2%3 --dependency=afterok:1:2,singleton',
];

test('the same words, the same refusals', async () => {
  const scripts = readdirSync(EXAMPLES)
    .map((name) => readFileSync(path.join(EXAMPLES, name), 'utf8'))
    .filter((text) => text.includes('\n#SBATCH'));
  for (const script of [...scripts, ...ODD.map((lines) => `#!/bin/sh\n${lines}\n`)]) {
    const file = path.join(folder, 'job.sh');
    writeFileSync(file, script);
    const reading = await slurmReads(file);
    if (!reading) {
      const message = 'sbatch is not installed (package slurm-client): nothing was compared';
      if (process.env['CI'] === 'true') throw new Error(message);
      console.warn(message);
      return;
    }
    expect({ script, ...weRead(script) }).toEqual({ script, ...reading });
  }
});
