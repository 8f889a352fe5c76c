import type { DescField, DescMessage } from "@bufbuild/protobuf";

/**
 * Throws a TypeError where a value has a member that its message does not have, which would
 * otherwise be left out without a word. A message that is made already has none.
 */
export function checkMembers(schema: DescMessage, value: object, path = ""): void {
  if ("$typeName" in value) return;
  for (const [name, member] of Object.entries(value)) {
    const found = schema.members.find((m) => m.localName === name);
    if (!found) throw new TypeError(`${path || schema.name} has no member ${name}`);
    const at = path ? `${path}.${name}` : name;
    if (found.kind === "field") checkField(found, member, at);
    else if (isObject(member) && "case" in member && member.case !== undefined) {
      const chosen = found.fields.find((f) => f.localName === member.case);
      if (!chosen) throw new TypeError(`${at} has no case ${String(member.case)}`);
      checkField(chosen, "value" in member ? member.value : undefined, `${at}.value`);
    }
  }
}

function checkField(field: DescField, value: unknown, path: string): void {
  if (!field.message || !isObject(value)) return;
  const { message } = field;
  const check = (item: unknown, at: string) => isObject(item) && checkMembers(message, item, at);
  if (field.fieldKind === "message") check(value, path);
  else if (Array.isArray(value)) value.forEach((item, i) => check(item, `${path}[${i}]`));
  else for (const [key, item] of Object.entries(value)) check(item, `${path}[${JSON.stringify(key)}]`);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
