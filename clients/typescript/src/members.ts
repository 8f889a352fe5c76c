import { inspect } from "node:util";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";

/**
 * Throws a TypeError if a value has a member that its message does not have, or one of another
 * type. Otherwise it would be dropped, or sent as something else, silently.
 */
export function checkMembers(schema: DescMessage, value: object, path = ""): void {
  for (const [name, member] of Object.entries(value)) {
    if (ofTheSchema.has(name)) continue;
    const found = schema.members.find((m) => m.localName === name);
    if (!found) throw new TypeError(`${path || schema.name} has no member ${name}`);
    if (member === undefined) continue;
    const at = path ? `${path}.${name}` : name;
    if (found.kind === "field") checkField(found, member, at);
    else if (isObject(member) && "case" in member && member.case !== undefined) {
      const chosen = found.fields.find((f) => f.localName === member.case);
      if (!chosen) throw new TypeError(`${at} has no case ${String(member.case)}`);
      checkField(chosen, "value" in member ? member.value : undefined, path ? `${path}.${member.case}` : String(member.case));
    }
  }
}

/** Members of messages that were created by their schema. */
const ofTheSchema = new Set(["$typeName", "$unknown"]);

/** Fields that models, tools and people write. Half of a surrogate pair, which UTF-8 cannot express, is sent as U+FFFD in them. */
const written = new Set(["body", "error", "instructions", "summary", "text"]);

function checkField(field: DescField, value: unknown, path: string): void {
  if (field.fieldKind === "list") {
    if (!Array.isArray(value)) throw wrong(path, "a list", value);
    value.forEach((item, i) => checkItem(field, item, `${path}[${i}]`));
  } else if (field.fieldKind === "map") {
    if (!isObject(value)) throw wrong(path, "an object", value);
    for (const [key, item] of Object.entries(value)) {
      checkWhole(key, `a name in ${path}`);
      checkItem(field, item, `${path}[${JSON.stringify(key)}]`);
    }
  } else {
    checkItem(field, value, path);
  }
}

function checkItem({ name, message, scalar, enum: values }: DescField, value: unknown, path: string): void {
  if (message) {
    if (!isObject(value)) throw wrong(path, "an object", value);
    checkMembers(message, value, path);
  }
  if (values && !values.values.some(({ number }) => number === value)) throw wrong(path, `a value of ${values.name}`, value);
  const bits = integers.get(scalar);
  if (bits && !fits(value, bits)) throw wrong(path, bits.least < 0n ? "an integer" : "an integer of 0 or more", value);
  if (scalar === ScalarType.DOUBLE && typeof value !== "number") throw wrong(path, "a number", value);
  if (scalar === ScalarType.STRING && typeof value !== "string") throw wrong(path, "a string", value);
  if (typeof value === "string" && !written.has(name)) checkWhole(value, path);
  if (scalar === ScalarType.BOOL && typeof value !== "boolean") throw wrong(path, "true or false", value);
  if (scalar === ScalarType.BYTES && !(value instanceof Uint8Array)) throw wrong(path, "a Uint8Array", value);
}

/** Two names that differ only in halves of surrogate pairs would be the same in UTF-8. */
function checkWhole(name: string, path: string): void {
  if (!name.isWellFormed()) throw wrong(path, "a string without half of a surrogate pair", name);
}

interface Bits {
  least: bigint;
  most: bigint;
}

/** Ranges of the integers in the API's messages, by their type. */
const integers = new Map<ScalarType | undefined, Bits>([
  [ScalarType.INT32, { least: -(2n ** 31n), most: 2n ** 31n - 1n }],
  [ScalarType.UINT32, { least: 0n, most: 2n ** 32n - 1n }],
  [ScalarType.INT64, { least: -(2n ** 63n), most: 2n ** 63n - 1n }],
  [ScalarType.UINT64, { least: 0n, most: 2n ** 64n - 1n }],
]);

function fits(value: unknown, { least, most }: Bits): boolean {
  if (typeof value !== "bigint" && !Number.isSafeInteger(value)) return false;
  const exact = BigInt(value as bigint | number);
  return exact >= least && exact <= most;
}

/** The error for an argument of the wrong type. */
export function wrong(path: string, wanted: string, value: unknown): TypeError {
  const shown = typeof value === "string" ? JSON.stringify(value) : inspect(value, { depth: 1, breakLength: Infinity });
  return new TypeError(`${path} must be ${wanted}, not ${shown}`);
}

/** Returns the value. Throws a TypeError if it is not an object, since it would then be ignored. */
export function checkObject<T extends object>(path: string, value: T): T {
  if (!isObject(value)) throw wrong(path, "an object", value);
  return value;
}

export function checkOptions<T extends object>(options: T): T {
  return checkObject("options", options);
}

/** Throws a TypeError for options that `what` does not have, since they would be ignored. */
export function checkNone(what: string, others: object): void {
  for (const name of Object.keys(others)) throw new TypeError(`${what} has no option ${name}`);
}

/** Throws a TypeError if an option is set and is not a function. */
export function checkFunctions(functions: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(functions)) {
    if (value !== undefined && typeof value !== "function") throw wrong(name, "a function", value);
  }
}

/** Timers with a longer time fire at once. */
const longestMs = 2 ** 31 - 1;

/** Throws a TypeError if a call's options have wrong types, which the transport would misread. */
export function checkControl(options: object | undefined): void {
  if (options === undefined) return;
  const { timeoutMs, signal, headers: _, onHeader: __, onTrailer: ___, contextValues: ____, ...others } = checkOptions(options) as CallOptions;
  checkNone("a call", others);
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= longestMs)) {
    throw wrong("timeoutMs", `milliseconds, more than 0 and at most ${longestMs}`, timeoutMs);
  }
  if (signal !== undefined && !(isObject(signal) && "aborted" in signal)) throw wrong("signal", "an AbortSignal", signal);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
