/**
 * The TypeScript client as a package for other projects: JavaScript with types, because Node strips
 * no types below node_modules. Writes FOLDER/drover-VERSION.tgz and says so.
 *
 *   node tools/clientPackage.ts [FOLDER]
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');
const BUILD = path.join(ROOT, '.cache/client-package');
/** What its code and its types import; the rest of Drover's packages are the server's. */
const NEEDED = ['undici', 'zod'];

interface Package {
  version: string;
  description: string;
  license: string;
  engines: Record<string, string>;
  dependencies: Record<string, string>;
}

function build(): void {
  rmSync(BUILD, { recursive: true, force: true });
  execFileSync(path.join(ROOT, 'node_modules/.bin/tsc'), ['-p', 'tools/client'], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  const own = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as Package;
  const { version, description, license, engines } = own;
  const dependencies = Object.fromEntries(NEEDED.map((name) => [name, own.dependencies[name]]));
  const entry = { types: './lib/protocol/sdk.d.ts', default: './lib/protocol/sdk.js' };
  const exports = { '.': entry, './package.json': './package.json' };
  const contents = { name: 'drover', version, description, license, type: 'module', exports };
  const text = JSON.stringify({ ...contents, engines, dependencies }, null, 2);
  writeFileSync(path.join(BUILD, 'package.json'), `${text}\n`);
  copyFileSync(path.join(ROOT, 'LICENSE'), path.join(BUILD, 'LICENSE'));
  copyFileSync(path.join(ROOT, 'docs/typescript.md'), path.join(BUILD, 'README.md'));
}

const target = path.resolve(process.argv[2] ?? '.');
mkdirSync(target, { recursive: true });
build();
const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', target];
const name = execFileSync('npm', args, { cwd: BUILD, encoding: 'utf8' }).trim();
console.log(path.join(target, name));
