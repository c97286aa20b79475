/** SFTP, version 3, on the files of the machine as the attempt's user sees them. */
import { constants, type Dir, type Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import { resolve } from 'node:path';
import ssh2, { type Attributes, type SFTPWrapper } from 'ssh2';
import type { Log } from '../../../lib/log.ts';

const { STATUS_CODE, OPEN_MODE } = ssh2.utils.sftp;
/** Open files and directories of one session. */
const MAX_HANDLES = 256;
/** One answer to a read; clients ask for 32 KiB and take less. */
const MAX_READ_BYTES = 256 * 1024;
const ENTRIES_PER_ANSWER = 100;
const PERMISSIONS = 0o7777;
const HANDLE_BYTES = 4;

type Handle = { file: fs.FileHandle } | { directory: Dir; path: string };

/** Relative paths start in the attempt's directory, as a shell there would. */
export function serveSftp(sftp: SFTPWrapper, home: string, log: Log): void {
  const handles = new Handles();
  const at = (path: string): string => resolve(home, path);
  let answered = Promise.resolve();
  // One after another: OpenSSH cuts a file where answers come in another order than it asked.
  const answer = (id: number, act: () => Promise<unknown>): void => {
    answered = answered.then(async () => {
      try {
        await act();
      } catch (error) {
        sftp.status(id, statusOf(error), messageOf(error));
      }
    });
  };
  const done = (id: number, act: () => Promise<unknown>): void =>
    answer(id, async () => {
      await act();
      sftp.status(id, STATUS_CODE.OK);
    });
  serveFiles(sftp, { handles, at, answer, done });
  serveDirectories(sftp, { handles, at, answer, done });
  sftp.on('end', () => endWell(sftp));
  sftp.on('close', () => {
    handles.closeAll().catch((error: unknown) => {
      log.warn({ error: String(error) }, 'files of an SFTP session could not be closed');
    });
  });
}

/**
 * The client has said its last word and waits for the exit status, without which scp fails. The
 * library sends one on every channel but this kind, so its own parts are used; a test runs it.
 */
function endWell(sftp: SFTPWrapper): void {
  const { _protocol, outgoing } = sftp as unknown as {
    _protocol: { exitStatus(channel: number, status: number): void };
    outgoing: { id: number };
  };
  _protocol.exitStatus(outgoing.id, 0);
  sftp.end();
}

interface Parts {
  handles: Handles;
  at: (path: string) => string;
  answer: (id: number, act: () => Promise<unknown>) => void;
  done: (id: number, act: () => Promise<unknown>) => void;
}

function serveFiles(sftp: SFTPWrapper, { handles, at, answer, done }: Parts): void {
  sftp.on('OPEN', (id, path, flags, attributes) =>
    answer(id, async () => {
      handles.requireRoom();
      const file = await fs.open(at(path), openFlags(flags), permissionsOf(attributes, 0o666));
      sftp.handle(id, handles.add({ file }));
    }),
  );
  sftp.on('READ', (id, handle, offset, length) =>
    answer(id, async () => {
      const buffer = Buffer.allocUnsafe(Math.min(length, MAX_READ_BYTES));
      const { bytesRead } = await handles.file(handle).read(buffer, 0, buffer.length, offset);
      if (bytesRead === 0) sftp.status(id, STATUS_CODE.EOF);
      else sftp.data(id, buffer.subarray(0, bytesRead));
    }),
  );
  sftp.on('WRITE', (id, handle, offset, data) => {
    // The bytes are the parser's own and are used again once this returns.
    const bytes = Buffer.from(data);
    done(id, async () => {
      for (let from = 0; from < bytes.length;) {
        const left = bytes.length - from;
        const to = offset + from;
        from += (await handles.file(handle).write(bytes, from, left, to)).bytesWritten;
      }
    });
  });
  sftp.on('CLOSE', (id, handle) => done(id, () => handles.close(handle)));
  sftp.on('FSTAT', (id, handle) =>
    answer(id, async () => sftp.attrs(id, attributesOf(await handles.file(handle).stat()))),
  );
  sftp.on('FSETSTAT', (id, handle, attributes) =>
    done(id, () => setFileAttributes(handles.file(handle), attributes)),
  );
  sftp.on('SETSTAT', (id, path, attributes) => done(id, () => setAttributes(at(path), attributes)));
  sftp.on('REMOVE', (id, path) => done(id, () => fs.unlink(at(path))));
  sftp.on('RENAME', (id, from, to) => done(id, () => renameToFree(at(from), at(to))));
}

function serveDirectories(sftp: SFTPWrapper, { handles, at, answer, done }: Parts): void {
  const stat = (id: number, act: () => Promise<Stats>): void =>
    answer(id, async () => sftp.attrs(id, attributesOf(await act())));
  const name = (id: number, act: () => Promise<string>): void =>
    answer(id, async () => {
      const filename = await act();
      sftp.name(id, [{ filename, longname: filename, attrs: attributesOf(undefined) }]);
    });
  sftp.on('STAT', (id, path) => stat(id, () => fs.stat(at(path))));
  sftp.on('LSTAT', (id, path) => stat(id, () => fs.lstat(at(path))));
  sftp.on('REALPATH', (id, path) => name(id, async () => realPathOf(at(path))));
  sftp.on('READLINK', (id, path) => name(id, () => fs.readlink(at(path))));
  // OpenSSH sends the two names in an order of its own, which the parser has turned.
  sftp.on('SYMLINK', (id, link, target) => done(id, () => fs.symlink(target, at(link))));
  sftp.on('MKDIR', (id, path, attributes) =>
    done(id, () => fs.mkdir(at(path), { mode: permissionsOf(attributes, 0o777) })),
  );
  sftp.on('RMDIR', (id, path) => done(id, () => fs.rmdir(at(path))));
  sftp.on('OPENDIR', (id, path) =>
    answer(id, async () => {
      handles.requireRoom();
      const directory = await fs.opendir(at(path));
      sftp.handle(id, handles.add({ directory, path: at(path) }));
    }),
  );
  sftp.on('READDIR', (id, handle) =>
    answer(id, async () => {
      const entries = await readEntries(handles.directory(handle));
      if (entries.length === 0) sftp.status(id, STATUS_CODE.EOF);
      else sftp.name(id, entries);
    }),
  );
}

/** What a client holds open, by numbers that are no file descriptors. */
class Handles {
  readonly #open = new Map<number, Handle>();
  #last = 0;

  requireRoom(): void {
    if (this.#open.size >= MAX_HANDLES) throw new Error(`${MAX_HANDLES} files are open`);
  }

  add(handle: Handle): Buffer {
    this.#open.set(++this.#last, handle);
    const name = Buffer.alloc(HANDLE_BYTES);
    name.writeUInt32BE(this.#last);
    return name;
  }

  file(name: Buffer): fs.FileHandle {
    const handle = this.#get(name);
    if ('file' in handle) return handle.file;
    throw new Error('it is a directory');
  }

  directory(name: Buffer): { directory: Dir; path: string } {
    const handle = this.#get(name);
    if ('directory' in handle) return handle;
    throw new Error('it is no directory');
  }

  async close(name: Buffer): Promise<void> {
    const handle = this.#get(name);
    this.#open.delete(name.readUInt32BE());
    await ('file' in handle ? handle.file.close() : handle.directory.close());
  }

  async closeAll(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(
      open.map((handle) => ('file' in handle ? handle.file.close() : handle.directory.close())),
    );
  }

  #get(name: Buffer): Handle {
    const handle = name.length === HANDLE_BYTES ? this.#open.get(name.readUInt32BE()) : undefined;
    if (handle === undefined) throw new Error('no such handle');
    return handle;
  }
}

function openFlags(flags: number): number {
  const { O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY } = constants;
  const reads = (flags & OPEN_MODE.READ) !== 0;
  const writes = (flags & OPEN_MODE.WRITE) !== 0;
  let opened = reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY;
  if (flags & OPEN_MODE.APPEND) opened |= O_APPEND;
  if (flags & OPEN_MODE.CREAT) opened |= O_CREAT;
  if (flags & OPEN_MODE.TRUNC) opened |= O_TRUNC;
  if (flags & OPEN_MODE.EXCL) opened |= O_EXCL;
  return opened;
}

/** Clients that say nothing leave it to the umask. */
function permissionsOf(attributes: Partial<Attributes>, otherwise: number): number {
  return attributes.mode === undefined ? otherwise : attributes.mode & PERMISSIONS;
}

async function setFileAttributes(file: fs.FileHandle, wanted: Partial<Attributes>): Promise<void> {
  const { size, mode, uid, gid, atime, mtime } = wanted;
  if (size !== undefined) await file.truncate(size);
  if (mode !== undefined) await file.chmod(mode & PERMISSIONS);
  if (uid !== undefined && gid !== undefined) await file.chown(uid, gid);
  if (atime !== undefined && mtime !== undefined) await file.utimes(atime, mtime);
}

async function setAttributes(path: string, wanted: Partial<Attributes>): Promise<void> {
  const { size, mode, uid, gid, atime, mtime } = wanted;
  if (size !== undefined) await fs.truncate(path, size);
  if (mode !== undefined) await fs.chmod(path, mode & PERMISSIONS);
  if (uid !== undefined && gid !== undefined) await fs.chown(path, uid, gid);
  if (atime !== undefined && mtime !== undefined) await fs.utimes(path, atime, mtime);
}

/** Version 3 replaces nothing that is there. */
async function renameToFree(from: string, to: string): Promise<void> {
  const existing = await fs.lstat(to).catch(() => undefined);
  if (existing !== undefined) throw new Error(`${to} exists`);
  await fs.rename(from, to);
}

/** Of what does not exist yet the plain path, which is what a client asks of a new file. */
async function realPathOf(path: string): Promise<string> {
  return fs.realpath(path).catch(() => path);
}

async function readEntries({ directory, path }: { directory: Dir; path: string }) {
  const entries: { filename: string; longname: string; attrs: Attributes }[] = [];
  while (entries.length < ENTRIES_PER_ANSWER) {
    const entry = await directory.read();
    if (entry === null) break;
    // Gone between the two looks: then it is not listed.
    const stats = await fs.lstat(resolve(path, entry.name)).catch(() => undefined);
    if (stats === undefined) continue;
    const attrs = attributesOf(stats);
    entries.push({ filename: entry.name, longname: longName(entry.name, stats), attrs });
  }
  return entries;
}

/** As `ls -l` has it; people read it, programs take the attributes. */
function longName(name: string, stats: Stats): string {
  const kind = stats.isDirectory() ? 'd' : stats.isSymbolicLink() ? 'l' : '-';
  const letters = Array.from('rwxrwxrwx', (letter, at) =>
    stats.mode & (1 << (8 - at)) ? letter : '-',
  );
  const size = String(stats.size).padStart(12);
  const date = stats.mtime.toISOString().slice(0, 16).replace('T', ' ');
  const owner = `${stats.nlink} ${stats.uid} ${stats.gid}`;
  return `${kind}${letters.join('')} ${owner} ${size} ${date} ${name}`;
}

function attributesOf(stats: Stats | undefined): Attributes {
  if (stats === undefined) return { mode: 0, uid: 0, gid: 0, size: 0, atime: 0, mtime: 0 };
  const { mode, uid, gid, size, atimeMs, mtimeMs } = stats;
  return {
    mode,
    uid,
    gid,
    size,
    atime: Math.floor(atimeMs / 1000),
    mtime: Math.floor(mtimeMs / 1000),
  };
}

function statusOf(error: unknown): number {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return STATUS_CODE.NO_SUCH_FILE;
    case 'EACCES':
    case 'EPERM':
      return STATUS_CODE.PERMISSION_DENIED;
    default:
      return STATUS_CODE.FAILURE;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
