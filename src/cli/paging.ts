/** Lists of any length: --limit and --all over the server's pages, and what was left out. */
import { UsageError, wholeNumber, type OptionTable } from './args.ts';
import type { CommandContext } from './command.ts';
import type { ListPage, PageOptions } from '../protocol/client.ts';
import { printTable, type Column } from './table.ts';

export const pagingOptions = {
  limit: { kind: 'text', value: 'N', help: 'at most N (default 50)' },
  all: { kind: 'flag', help: 'all of them, however many' },
} as const satisfies OptionTable;

const DEFAULT_LIMIT = 50;
/** The server's largest page. */
const PAGE_LIMIT = 500;

export interface Listed<Item> {
  items: Item[];
  more: boolean;
}

export async function fetchList<Item>(
  options: { limit: string | undefined; all: boolean },
  page: (options: PageOptions) => Promise<ListPage<Item>>,
): Promise<Listed<Item>> {
  if (options.all && options.limit !== undefined) {
    throw new UsageError('--limit and --all exclude each other');
  }
  const limit =
    options.limit === undefined ? DEFAULT_LIMIT : wholeNumber(options.limit, '--limit', 1);
  const wanted = options.all ? Number.POSITIVE_INFINITY : limit;
  const items: Item[] = [];
  let cursor: string | undefined;
  for (;;) {
    const fetched = await page({ cursor, limit: Math.min(PAGE_LIMIT, wanted - items.length) });
    items.push(...fetched.items);
    cursor = fetched.nextCursor ?? undefined;
    if (cursor === undefined || items.length >= wanted) break;
  }
  return { items, more: cursor !== undefined };
}

/** JSON: the array. A person: a table, what to type when it is empty, and that there is more. */
export async function printList<Item>(
  context: CommandContext,
  listed: Listed<Item>,
  columns: Column<Item>[],
  whenEmpty: string,
): Promise<void> {
  if (context.json) return context.printJson(listed.items);
  if (listed.items.length === 0) return context.notice(whenEmpty);
  await printTable(context.io, listed.items, columns);
  if (listed.more) await context.notice('there are more: --limit N or --all');
}
