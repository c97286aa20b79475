/**
 * Makes one executable of the agent, for Linux hosts without Node: a Node that holds the agent's
 * code. Beside it the same compressed, its checksum, and what the gateway tells about it.
 *
 *   node tools/bundleAgent.ts [FOLDER]
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { rolldown, type Plugin } from 'rolldown';
import { AGENT_VERSION } from '../src/protocol/agent.ts';
import { inlineFiles } from './bundleCli.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** What Node looks for in itself, see its documentation of single executables. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
/** Optional and native parts of ws and ssh2: both do without them. */
const ABSENT = /^(bufferutil|utf-8-validate|cpu-features|.*\/sshcrypto\.node)$/;
const ABSENT_CODE = "throw new Error('not part of the self-contained agent')";

/** The system's Node may be linked with libraries that other machines lack; this one is not. */
const OWN_NODE = path.join(ROOT, '.node/bin/node');

const withoutOptional: Plugin = {
  name: 'without-optional',
  resolveId: { filter: { id: ABSENT }, handler: () => '\0absent' },
  load: { filter: { id: /^\0absent$/ }, handler: () => ABSENT_CODE },
};

/** Returns the executable's path. Each file is written aside and renamed, what names it last. */
export async function bundleAgent(
  folder: string,
  level: number = constants.Z_BEST_COMPRESSION,
): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const name = `drover-agent-${process.platform}-${process.arch}`;
  const work = mkdtempSync(path.join(folder, '.making-'));
  try {
    const code = path.join(work, 'agent.js');
    await bundleCode(code);
    const made = path.join(work, name);
    makeExecutable(made, code, work);
    const sha256 = await sha256Of(made);
    await pipeline(createReadStream(made), createGzip({ level }), createWriteStream(`${made}.gz`));
    writeFileSync(`${made}.sha256`, `${sha256}  ${name}\n`);
    const facts = { version: AGENT_VERSION, sha256, bytes: statSync(made).size };
    writeFileSync(`${made}.json`, `${JSON.stringify(facts)}\n`);
    for (const ending of ['', '.gz', '.sha256', '.json']) {
      renameSync(made + ending, path.join(folder, name + ending));
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return path.join(folder, name);
}

async function bundleCode(file: string): Promise<void> {
  const bundle = await rolldown({
    input: path.join(ROOT, 'src/bin/agentFile.ts'),
    platform: 'node',
    plugins: [inlineFiles, withoutOptional],
  });
  try {
    const { output } = await bundle.write({
      file,
      format: 'cjs',
      codeSplitting: false,
      minify: { mangle: false, compress: true, codegen: false },
    });
    if (output.length !== 1) throw new Error(`not one file but ${output.length}`);
  } finally {
    await bundle.close();
  }
}

function makeExecutable(file: string, code: string, work: string): void {
  const node = existsSync(OWN_NODE) ? OWN_NODE : process.execPath;
  const blob = path.join(work, 'agent.blob');
  const config = {
    main: code,
    output: blob,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    // Options that somebody set for a Node of theirs are not meant for the agent.
    execArgvExtension: 'none',
    assets: { 'agent.js': code, 'pty.node': nativeTerminal() },
  };
  const configFile = path.join(work, 'sea.json');
  writeFileSync(configFile, JSON.stringify(config));
  execFileSync(node, ['--experimental-sea-config', configFile], { stdio: 'pipe' });
  copyFileSync(node, file);
  chmodSync(file, 0o755);
  strip(file);
  const postject = createRequire(import.meta.url).resolve('postject/dist/cli.js');
  const inject = [postject, file, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', FUSE];
  execFileSync(process.execPath, inject, { stdio: 'pipe' });
}

/** Symbols are a seventh of it. Without binutils they stay. */
function strip(file: string): void {
  try {
    execFileSync('strip', [file]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

export function nativeTerminal(): string {
  const packages = createRequire(createRequire(import.meta.url).resolve('@lydell/node-pty'));
  return packages.resolve(`@lydell/node-pty-${process.platform}-${process.arch}/pty.node`);
}

async function sha256Of(file: string): Promise<string> {
  const digest = createHash('sha256');
  await pipeline(createReadStream(file), digest);
  return digest.digest('hex');
}

if (import.meta.main) {
  const file = await bundleAgent(path.resolve(process.argv[2] ?? path.join(ROOT, 'dist')));
  const mib = (name: string): number => Math.ceil(statSync(name).size / 1024 / 1024);
  const sha256 = readFileSync(`${file}.sha256`, 'utf8').slice(0, 64);
  console.log(`${path.relative('', file)}: ${mib(file)} MiB, ${mib(`${file}.gz`)} MiB as .gz`);
  console.log(`sha256 ${sha256}`);
}
