/**
 * Makes one file of the command line: dist/drover, for any machine with Node 24, Linux or macOS.
 *
 *   node tools/bundleCli.ts [FILE]
 */
import { chmodSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { rolldown, type Plugin } from 'rolldown';

const ROOT = path.resolve(import.meta.dirname, '..');
/** Files that the source reads beside itself go into the bundle as text. */
const READ = /readFileSync\(\s*new URL\('([^']+)', import\.meta\.url\),\s*'utf8',?\s*\)/g;

const BANNER = `#!/usr/bin/env node
if (Number(process.versions.node.split('.')[0]) < 24) {
  console.error('error NODE: drover needs Node 24 or newer, this is ' + process.version);
  process.exit(1);
}`;

export const inlineFiles: Plugin = {
  name: 'inline-files',
  transform: {
    filter: { code: 'readFileSync' },
    handler(code, id) {
      const folder = path.dirname(id);
      return code.replace(READ, (_, file: string) => JSON.stringify(textOf(folder, file)));
    },
  },
};

/** Of package.json only the version is asked for, and only that is anybody's business. */
function textOf(folder: string, file: string): string {
  const text = readFileSync(path.resolve(folder, file), 'utf8');
  if (path.basename(file) !== 'package.json') return text;
  const { version } = JSON.parse(text) as { version: string };
  return JSON.stringify({ version });
}

export async function bundleCli(file: string): Promise<void> {
  const bundle = await rolldown({
    input: path.join(ROOT, 'src/bin/client.ts'),
    platform: 'node',
    // Optional and native parts of ws: it does without them.
    external: ['bufferutil', 'utf-8-validate'],
    plugins: [inlineFiles],
  });
  try {
    const { output } = await bundle.write({
      file,
      format: 'esm',
      banner: BANNER,
      codeSplitting: false,
      minify: { mangle: false, compress: true, codegen: false },
    });
    if (output.length !== 1) throw new Error(`not one file but ${output.length}`);
  } finally {
    await bundle.close();
  }
  chmodSync(file, 0o755);
}

if (import.meta.main) {
  const file = path.resolve(process.argv[2] ?? path.join(ROOT, 'dist', 'drover'));
  await bundleCli(file);
  console.log(`${path.relative('', file)}: ${Math.ceil(statSync(file).size / 1024)} KiB`);
}
