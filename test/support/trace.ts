/** Reads what strace wrote about a server: was the log synced between request and reply? */

interface SystemCall {
  name: string;
  /** Descriptor with its file's name, and the beginning of the data. */
  detail: string;
  /** A call is two moments: data leaves at its begin, a sync counts from its end. */
  moment: 'begin' | 'end';
}

/** In the order in which strace saw them, which is the order of all threads. */
export function readTrace(text: string): SystemCall[] {
  const moments: SystemCall[] = [];
  const begun = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, pid = '', name = '', rest = ''] =
      /^(\d+) +[\d.]+ (?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*)$/.exec(line) ?? [];
    if (name === '') continue;
    const resumed = line.includes(' resumed>');
    const detail = resumed ? `${begun.get(pid) ?? ''}${rest}` : rest;
    if (!resumed) moments.push({ name, detail, moment: 'begin' });
    if (rest.endsWith('<unfinished ...>')) begun.set(pid, detail);
    else moments.push({ name, detail, moment: 'end' });
  }
  return moments;
}

export interface Reply {
  /** Since the request: data was written to the database's log, and a sync of it ended. */
  written: boolean;
  synced: boolean;
}

/** For each 201 to a submit. Requests must come one after another. */
export function repliesToSubmits(moments: SystemCall[]): Reply[] {
  const replies: Reply[] = [];
  let now: Reply | null = null;
  for (const { name, detail, moment } of moments) {
    const begins = moment === 'begin';
    if (!begins && detail.includes('"POST /v1/jobs ')) now = { written: false, synced: false };
    if (now === null) continue;
    if (detail.includes('drover.db-wal>')) {
      // What is written after a sync needs another one.
      if (name === 'pwrite64' && begins) now = { written: true, synced: false };
      if (/^f(data)?sync$/.test(name) && !begins) now.synced = detail.endsWith('= 0');
    }
    if (begins && detail.includes('"HTTP/1.1 201 ')) {
      replies.push(now);
      now = null;
    }
  }
  return replies;
}
