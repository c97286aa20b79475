/**
 * The exec protocol, from client through gateway to agent. On the client's WebSocket a text message
 * is JSON and a binary one is a channel byte and bytes:
 *
 *   client: {"type":"start","command":["sh"],"tty":true,"cols":80,"rows":24,"env":{"TERM":"vt100"}}
 *           then any of  [0 stdin]…  {"type":"end"}  {"type":"resize","cols":…,"rows":…}
 *                        {"type":"signal","signal":"SIGTERM"}
 *   server: [1 stdout]…  [2 stderr]…  {"type":"taken","bytes":…}
 *           and last  {"type":"exit","code":0,"signal":null}
 *           or  {"type":"error","code":"UNAVAILABLE","message":"…","hint":"…"}
 *
 * A client sends at most EXEC_INPUT_BYTES of stdin beyond what was `taken`, so that a signal, a
 * resize or its leaving never waits behind input that the command does not read. A client that
 * leaves ends the command. With a terminal there is no stderr, and no end of stdin: send byte 4. In
 * a tunnel stream each message is led by its length (4 bytes) and JSON has a channel of its own.
 */
import { z } from 'zod';
import { DroverError } from '../../lib/errors.ts';

/** The WebSocket subprotocol of clients. One that offers none is taken to mean this. */
export const EXEC_PROTOCOL = 'drover.exec.v1';
export const EXEC_PATH = /^\/v1\/tasks\/([^/]+)\/exec$/;
export const CHANNELS = { stdin: 0, stdout: 1, stderr: 2, control: 3 } as const;
/** One message, channel byte included: what each hop holds at once, and room for a long command. */
export const EXEC_MESSAGE_BYTES = 64 * 1024;
/** Input on its way to the command. Less than a stream's window, so that it never fills one. */
export const EXEC_INPUT_BYTES = 256 * 1024;

const size = z.int().min(1).max(10_000);
const noZeroByte = z.string().refine((text) => !text.includes('\0'), 'contains a zero byte');

export const execStart = z.strictObject({
  type: z.literal('start'),
  command: z.array(noZeroByte).min(1).max(4096),
  tty: z.boolean(),
  cols: size.optional(),
  rows: size.optional(),
  /** Added to the task's own environment. */
  env: z.record(noZeroByte.regex(/^[^=]+$/), noZeroByte).optional(),
});
export type ExecStart = z.infer<typeof execStart>;

const EXEC_SIGNALS = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGSTOP',
  'SIGCONT',
] as const;
export type ExecSignal = (typeof EXEC_SIGNALS)[number];

export const execInput = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('end') }),
  z.strictObject({ type: z.literal('resize'), cols: size, rows: size }),
  z.strictObject({ type: z.literal('signal'), signal: z.enum(EXEC_SIGNALS) }),
]);
export type ExecInput = z.infer<typeof execInput>;

/** Read by clients, which may be older than the server: further keys are ignored. */
export const execReply = z.discriminatedUnion('type', [
  z.object({ type: z.literal('taken'), bytes: z.int().min(1) }),
  z.object({ type: z.literal('exit'), code: z.int().nullable(), signal: z.string().nullable() }),
  z.object({
    type: z.literal('error'),
    code: z.string(),
    message: z.string(),
    hint: z.string().optional(),
  }),
]);
export type ExecReply = z.infer<typeof execReply>;
export type ExecExit = Extract<ExecReply, { type: 'exit' }>;

export interface ExecMessage {
  channel: number;
  bytes: Uint8Array;
}

const LENGTH_BYTES = 4;
const encoder = new TextEncoder();

/** As it travels in a tunnel stream. */
export function encodeExecMessage(channel: number, bytes: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(LENGTH_BYTES + 1 + bytes.length);
  message.writeUInt32BE(1 + bytes.length);
  message[LENGTH_BYTES] = channel;
  message.set(bytes, LENGTH_BYTES + 1);
  return message;
}

export function encodeExecControl(control: ExecStart | ExecInput | ExecReply): Buffer {
  return encodeExecMessage(CHANNELS.control, encoder.encode(JSON.stringify(control)));
}

/** Messages out of a stream's bytes, however they were cut. Ends cleanly only between messages. */
export async function* readExecMessages(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<ExecMessage, void, undefined> {
  let held = Buffer.alloc(0);
  for await (const bytes of stream) {
    held = held.length === 0 ? asBuffer(bytes) : Buffer.concat([held, bytes]);
    while (held.length >= LENGTH_BYTES) {
      const length = held.readUInt32BE();
      if (length === 0 || length > EXEC_MESSAGE_BYTES) {
        throw new DroverError('MALFORMED_BODY', `an exec message of ${length} bytes`);
      }
      if (held.length < LENGTH_BYTES + length) break;
      const message = held.subarray(LENGTH_BYTES, LENGTH_BYTES + length);
      held = held.subarray(LENGTH_BYTES + length);
      yield { channel: message[0] ?? 0, bytes: message.subarray(1) };
    }
  }
  if (held.length > 0)
    throw new DroverError('MALFORMED_BODY', 'the exec stream ended in a message');
}

/** Throws INVALID_ARGUMENT that names the field. */
export function parseExecControl<Shape>(schema: z.ZodType<Shape>, text: string): Shape {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new DroverError('INVALID_ARGUMENT', 'an exec message is not JSON', { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join('.') ?? '';
  throw new DroverError(
    'INVALID_ARGUMENT',
    `exec message: ${where} ${issue?.message ?? ''}`.trim(),
  );
}

function asBuffer(bytes: Uint8Array): Buffer<ArrayBuffer> {
  return Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
}
