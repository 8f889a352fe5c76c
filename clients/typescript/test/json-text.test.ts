import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic } from "../src/anthropic/index.js";
import { items, member } from "../src/json-text.js";

const values = ["1.0", "1e400", "-0", "true", "null", '""', '"a,]}\\"{["', '"\\\\"', '"\\ud800"', "[]", "{}", '[1,[2,"]"],{"a":"}"}]', '{"a":1,"a":{"b":[",",2]}}'];

test("items of an array are the texts it was joined from", () => {
  for (let n = 0; n <= values.length; n++) {
    const list = values.slice(0, n);
    const text = `[${list.join(",")}]`;
    assert.deepEqual(
      items(text).map(({ start, end }) => text.slice(start, end)),
      list,
    );
  }
  assert.deepEqual(items("{}"), []);
});

test("a member is found by its name, the last where it occurs twice", () => {
  for (const value of values) {
    const text = `{"content":1,"a":"content","other":{"content":2},"c\\u006fntent":${value},"z":0}`;
    const span = member(text, "content");
    assert.equal(span && text.slice(span.start, span.end), value);
  }
  assert.equal(member('{"a":{"content":1}}', "content"), undefined);
  assert.equal(member("[1]", "content"), undefined);
});

const cached = ',"cache_control":{"type":"ephemeral"}';

for (const [what, text, item, want] of [
  ["the last item", '{"role":"user","content":[{"a":1.0},{"type":"text"}]}', undefined, `{"role":"user","content":[{"a":1.0},{"type":"text"${cached}}]}`],
  ["the item that is named", '{"role":"user","content":[{"a":1.0},{"b":2}]}', 0, `{"role":"user","content":[{"a":1.0${cached}},{"b":2}]}`],
  ["the system prompt", '{"system":[{"type":"text","text":"s"}]}', undefined, `{"system":[{"type":"text","text":"s"${cached}}]}`],
  ["nothing that has a mark", '{"content":[{"cache_control":{"type":"x"}}]}', undefined, '{"content":[{"cache_control":{"type":"x"}}]}'],
  ["what comes before reasoning", '{"content":[{"type":"text"},{"type":"thinking"}]}', undefined, `{"content":[{"type":"text"${cached}},{"type":"thinking"}]}`],
  ["nothing where all is reasoning", '{"content":[{"type":"thinking"}]}', undefined, '{"content":[{"type":"thinking"}]}'],
] as const) {
  test(`Anthropic's mark goes on ${what}`, () => assert.equal(anthropic.mark!(text, item), want));
}
