/** drover login: checks a token with a server and keeps both for later commands. */
import path from 'node:path';
import { createClient } from '../protocol/client.ts';
import { useClientTlsFiles, type ClientTlsFiles } from '../protocol/clientTls.ts';
import { UsageError } from './args.ts';
import { defineCommand, takePositionals } from './command.ts';
import { isReadable, normalUrl, READABLE } from './connection.ts';
import { saveContext } from './contexts.ts';
import { EXIT } from './exitCodes.ts';
import type { CliIo } from './io.ts';
import { readAll } from './io.ts';

export const loginCommand = defineCommand({
  name: 'login',
  summary: 'Remember a server and a token',
  usage: ['login URL [--name NAME] [--ca-file FILE]', 'login URL < TOKENFILE'],
  options: {
    name: { kind: 'text', value: 'NAME', help: 'how `drover context` calls it (else its host)' },
    'cert-file': { kind: 'text', value: 'FILE', help: 'what to show a server that asks for it' },
    'key-file': { kind: 'text', value: 'FILE', help: 'the key of that certificate' },
  },
  details:
    'The token is asked for without echo, or read from stdin; it is never an argument.\n' +
    'Where the certificate of the server is of your own authority, --ca-file names its file,\n' +
    'and later commands find it again.',
  async run(parsed, context) {
    const [text] = takePositionals(parsed, ['URL']);
    const { io } = context;
    const url = normalUrl(text!, 'URL');
    const { name } = parsed.options;
    if (name !== undefined && !/^[\w.:@-]+$/.test(name)) {
      throw new UsageError(
        `--name ${JSON.stringify(name)} holds more than letters, digits and .:@-`,
      );
    }
    if (isReadable(url)) await context.notice(`${url}: ${READABLE}`);
    const tls = tlsFiles(io, parsed.options);
    useClientTlsFiles(tls);
    const token = (await readToken(io, url)).trim();
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new UsageError('the token is empty or holds characters no token has');
    }
    const cluster = await createClient({ url, token }).cluster();
    const file = saveContext(io.env, { url, token, name, tls });
    if (context.json) await context.printJson({ url, cluster: cluster.id, file });
    else await context.print(`logged in to ${cluster.name || cluster.id} at ${url}`);
    if (io.env['DROVER_URL'] || io.env['DROVER_CONTEXT']) {
      await context.notice('DROVER_URL or DROVER_CONTEXT is set and goes before what was saved');
    }
    return EXIT.ok;
  },
});

/** In full: later commands are typed elsewhere. */
function tlsFiles(
  { env, cwd }: CliIo,
  options: Record<'ca-file' | 'cert-file' | 'key-file', string | undefined>,
): ClientTlsFiles {
  const files = {
    caFile: options['ca-file'] || env['DROVER_CA_FILE'],
    certFile: options['cert-file'] || env['DROVER_CERT_FILE'],
    keyFile: options['key-file'] || env['DROVER_KEY_FILE'],
  };
  if (!files.certFile !== !files.keyFile) {
    throw new UsageError('--cert-file and --key-file go together');
  }
  const given = Object.entries(files).filter(([, file]) => file);
  return Object.fromEntries(given.map(([name, file]) => [name, path.resolve(cwd, file!)]));
}

async function readToken(io: CliIo, url: string): Promise<string> {
  if (!io.stdin.isTTY) return readAll(io.stdin);
  await io.stderr.write(`token for ${url}: `);
  try {
    return await readHidden(io.stdin);
  } finally {
    await io.stderr.write('\n');
  }
}

const ENTER = /[\r\n]/;
const CTRL_C = '\x03';
const CTRL_D = '\x04';
const ERASE = new Set(['\x7f', '\b']);

/** Raw mode, so that the terminal prints nothing of what is typed or pasted. */
function readHidden(stdin: NodeJS.ReadStream): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let typed = '';
  const take = (chunk: Buffer | string): void => {
    for (const character of chunk.toString()) {
      if (ENTER.test(character) || character === CTRL_D) return resolve(typed);
      if (character === CTRL_C) return reject(new UsageError('stopped: nothing was saved'));
      typed = ERASE.has(character) ? typed.slice(0, -1) : typed + character;
    }
  };
  stdin.setRawMode(true);
  stdin.on('data', take);
  stdin.resume();
  return promise.finally(() => {
    stdin.off('data', take);
    stdin.setRawMode(false);
    stdin.pause();
  });
}
