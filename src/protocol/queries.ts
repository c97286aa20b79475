/** Values in a query: text on the wire, checked as what they mean. */
import { z } from 'zod';
import { timeOf } from './times.ts';

const WHOLE_NUMBER = /^-?\d{1,16}$/;
const DATE = '\\d{4}-[01]\\d-[0-3]\\d';
const CLOCK = '[0-2]\\d:[0-5]\\d(:[0-5]\\d(\\.\\d{1,9})?)?(Z|[+-][0-2]\\d:[0-5]\\d)?';
/** Days and hours that no calendar has are left to the check that it is a time. */
const TIME = new RegExp(`^(\\d{1,15}|${DATE}(T${CLOCK})?)$`);
/** A task's index, as large as an array may name it. */
const LARGEST_INDEX = 1_000_000_000;

/** In digits: neither "", which Number() takes for 0, nor "1e3" is one. */
export const wholeNumber = (least: number, most: number = Number.MAX_SAFE_INTEGER) =>
  z.preprocess(
    (value) => (typeof value === 'string' && WHOLE_NUMBER.test(value) ? Number(value) : value),
    z.int().min(least).max(most),
  );

/**
 * What a description says of such a number. Under names of its own, because zod leaves examples and
 * defaults of whatever is converted out of it; gateway/description/document.ts puts them right.
 */
export const saysOf = (example: number, usual?: number) => ({
  'x-example': example,
  ...(usual !== undefined && { 'x-default': usual }),
});

export const taskIndex = wholeNumber(0, LARGEST_INDEX)
  .optional()
  .describe('Only the task with this index')
  .meta(saysOf(0));

export const queryTime = z
  .string()
  .max(40)
  .regex(TIME, 'is no ISO 8601 time and no ms since 1970')
  .refine((text) => !Number.isNaN(timeOf(text)), 'is no ISO 8601 time and no ms since 1970');

export const queryCursor = z
  .string()
  .max(200)
  .optional()
  .describe('meta.nextCursor of the page before, unchanged; left out for the first page');

export const pageLimit = (most: number, usual: number) =>
  wholeNumber(1, most).default(usual).describe('Entries of a page').meta(saysOf(usual, usual));
