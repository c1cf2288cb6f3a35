"""What tests check is read from their source: those that were emptied are told from those that were changed."""

from __future__ import annotations

import pytest

from handrail.rules.toolchain.comparing.worded_tests import Checks
from handrail.rules.toolchain.comparing.written_tests import read_tests

PYTHON = (
    "from helpers import compare\n\n\ndef check(a):\n    assert a\n\n\n"
    "class TestA:\n    def test_b(self):\n        {}\n"
)
JAVASCRIPT = "test('adds', () => {{\n  {}\n}});\n"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("assert add(1, 2) == 3", Checks.ASSERTS),
        ("self.assertEqual(add(1, 2), 3)", Checks.ASSERTS),
        ("with pytest.raises(ValueError): add(None)", Checks.ASSERTS),
        ("check(add(1, 2))", Checks.ASSERTS),
        ("compare(add(1, 2), 3)", Checks.ASSERTS),
        ("for one in (1, 2): assert add(one, 0) == one", Checks.ASSERTS),
        ("add(1, 2)", Checks.RUNS),
        ("pass", Checks.NOTHING),
        ("print(3)", Checks.NOTHING),
        ("assert True", Checks.NOTHING),
        ("assert 1 == 1", Checks.NOTHING),
        ("x = 1; assert x == x", Checks.NOTHING),
        ("self.assertTrue(True)", Checks.NOTHING),
        ("return\n        assert add(1, 2) == 3", Checks.NOTHING),
        ("if False:\n            assert add(1, 2) == 3", Checks.NOTHING),
        ("try:\n            assert add(1, 2) == 3\n        except AssertionError:\n            pass", Checks.RUNS),
        ("try:\n            assert add(1, 2) == 3\n        except KeyError:\n            pass", Checks.ASSERTS),
        ("try:\n            assert add(1, 2)\n        except Exception as e:\n            print(e)", Checks.RUNS),
        ("with suppress(AssertionError):\n            assert add(1, 2) == 3", Checks.RUNS),
        ("with pytest.raises(AssertionError):\n            assert add(1, 2) == 3", Checks.RUNS),
        ("assert add(1, 2) == 3 or True", Checks.NOTHING),
        ("assert (add(1, 2) == 3, 'a tuple is never empty')", Checks.NOTHING),
        ("for one in []:\n            assert add(one, 0) == one", Checks.NOTHING),
        ("for _ in range(0):\n            assert add(1, 2) == 3", Checks.NOTHING),
        ("assert {'same': add(1, 2) == 3}", Checks.NOTHING),
        ("assert (x := 1) == 1", Checks.NOTHING),
        ("try:\n            assert add(1, 2) == 3\n        finally:\n            return", Checks.RUNS),
        ("match add(1, 2):\n            case 3: pass\n            case _: assert False", Checks.ASSERTS),
        ("match 1:\n            case 2: assert add(1, 2) == 3", Checks.SOMETIMES),
        ("pytest.fail('no')", Checks.ASSERTS),
        ("mock.assert_called_once_with(3)", Checks.ASSERTS),
        ("assert False, add(1, 2)", Checks.ASSERTS),
        ("if True:\n            assert add(1, 2) == 3", Checks.ASSERTS),
        ("if add(1, 2) > 3:\n            return\n        assert add(1, 2) == 3", Checks.SOMETIMES),
        ("assert add(1, 2) == 3\n        if add:\n            return\n        add(1)", Checks.ASSERTS),
        ("if add:\n            return add(3)\n        assert add(1, 2) == 3", Checks.ASSERTS),
        ("if add:\n            assert add(1, 2) == 3", Checks.SOMETIMES),
        ("if add:\n            assert add(1, 2) == 3\n        else:\n            assert sub(3)", Checks.ASSERTS),
    ],
)
def test_a_python_test_checks_what_it_reaches(body: str, wanted: Checks) -> None:
    [found] = [one for one in read_tests("tests/test_a.py", PYTHON.format(body).encode()) if one.is_test]
    assert (found.name, found.bare, found.line, found.checks) == ("TestA::test_b", "test_b", 9, wanted)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("expect(add(1, 2)).toBe(3);", Checks.ASSERTS),
        ("assert.strictEqual(add(1, 2), 3);", Checks.ASSERTS),
        ("add('it(')", Checks.RUNS),
        ("", Checks.NOTHING),
        ("// expect(add(1, 2)).toBe(3);", Checks.NOTHING),
        ("expect(true).toBe(true);", Checks.NOTHING),
        ("assert.ok(true);", Checks.NOTHING),
        ("console.log('ok');", Checks.NOTHING),
        ("return; expect(add(1, 2)).toBe(3);", Checks.NOTHING),
        ("try { expect(add(1, 2)).toBe(3); } catch (error) {}", Checks.RUNS),
        ("try { expect(add(1, 2)).toBe(3); } catch (error) { console.log(error); }", Checks.RUNS),
        ("try { add(); } catch (error) { expect(error.message).toBe('no'); }", Checks.ASSERTS),
        ("return add(1, 2).then((sum) => { expect(sum).toBe(3); }).catch(() => {});", Checks.RUNS),
        ("expect(add(1, 2)).toBe;", Checks.NOTHING),
        ("expect(add(1, 2) === 3 || true).toBe(true);", Checks.NOTHING),
        ("if (false) { expect(add(1, 2)).toBe(3); }", Checks.NOTHING),
        ("while (false) { expect(add(1, 2)).toBe(3); }", Checks.NOTHING),
        ("for (const x of []) { expect(add(x, 2)).toBe(3); }", Checks.NOTHING),
        ("[].forEach((x) => { expect(add(x, 2)).toBe(3); });", Checks.RUNS),
        ("false && expect(add(1, 2)).toBe(3);", Checks.NOTHING),
        ("return undefined; expect(add(1, 2)).toBe(3);", Checks.NOTHING),
        ("const f = () => { expect(add(1, 2)).toBe(3); };", Checks.NOTHING),
        ("const f = (a) => { expect(add(a, 2)).toBe(3); }; f(1);", Checks.ASSERTS),
        ("const x = add(1, 2); expect(x).toBe(x);", Checks.RUNS),
        ("try { expect(add(1, 2)).toBe(3); } finally { return; }", Checks.RUNS),
        ("if (process.env.NEVER) { expect(add(1, 2)).toBe(3); }", Checks.SOMETIMES),
        ("if (add(1, 2) < 3) expect(add(1, 2)).toBe(3);", Checks.SOMETIMES),
        ("if (a)\n      expect(add(1, 2))\n        .toBe(3);\n    add();", Checks.SOMETIMES),
        ("if (a) add(1); else expect(add(1, 2)).toBe(3);", Checks.ASSERTS),
        ("assert.strictEqual(add(1, 2), add(1, 2));", Checks.RUNS),
        ("expect(add([1, 2])).toEqual( add([1, 2]) );", Checks.RUNS),
        ("assert.deepEqual(add(1, [2]), [3]);", Checks.ASSERTS),
        ("add(1).then((sum) => expect(sum).toBe(3));", Checks.RUNS),
        ("expect(add(1, 2)).resolves.toBe(3);", Checks.RUNS),
        ("await expect(add(1, 2)).resolves.toBe(3);", Checks.ASSERTS),
        ("return add(1).then((sum) => expect(sum).toBe(3));", Checks.ASSERTS),
        ("if (a) return;\n    expect(add(1, 2)).toBe(3);", Checks.SOMETIMES),
        ("expect(add(1, 2)).toBe(3);\n    if (a) { return; }\n    expect(a).toBe(3);", Checks.ASSERTS),
        ("if (a) return add(1);\n    expect(add(1, 2)).toBe(3);", Checks.ASSERTS),
        ("add(1) && expect(add(1, 2)).toBe(3);", Checks.SOMETIMES),
        ("const sum = add(1) && add(2);\n    expect(sum).toBe(3);", Checks.ASSERTS),
        ("if (a) { expect(add(1, 2)).toBe(3); } else { expect(add(1, 3)).toBe(4); }", Checks.ASSERTS),
        ("setTimeout(() => { expect(add(1, 2)).toBe(3); }, 1000);", Checks.RUNS),
        ("expect(() => add(null)).toThrow();", Checks.ASSERTS),
        ("expect(() => { expect(add(1, 2)).toBe(3); }).toThrow();", Checks.RUNS),
    ],
)
def test_a_javascript_test_checks_what_its_words_say(body: str, wanted: Checks) -> None:
    [found] = read_tests("test/a.test.js", JAVASCRIPT.format(body).encode())
    assert (found.name, found.line, found.checks) == ("adds", 1, wanted)


@pytest.mark.parametrize(
    ("path", "source", "wanted"),
    [
        ("a_test.go", "func TestAdd(t *testing.T) {\n\tif add(1, 2) != 3 { t.Fatal() }\n}\n", Checks.ASSERTS),
        ("a_test.go", "func TestAdd(t *testing.T) {\n\trequire.Equal(t, 3, add(1, 2))\n}\n", Checks.ASSERTS),
        ("a_test.go", "func TestAdd(t *testing.T) {\n\tadd(1, 2)\n}\n", Checks.RUNS),
        ("a_test.go", "func TestAdd(t *testing.T) {\n\t// t.Fatal()\n}\n", Checks.NOTHING),
        ("a_test.go", "func TestAdd(t *testing.T) {\n\treturn\n\tt.Fatal()\n}\n", Checks.NOTHING),
        ("src/lib.rs", "#[test]\nfn TestAdd() { assert_eq!(add(1, 2), 3); }\n", Checks.ASSERTS),
        ("src/lib.rs", "#[tokio::test]\nasync fn TestAdd() { add(1, 2).await; }\n", Checks.RUNS),
        ("src/lib.rs", "#[test]\nfn TestAdd() { }\n", Checks.NOTHING),
        ("ATest.java", "@Test\nvoid TestAdd() { assertEquals(3, add(1, 2)); }\n", Checks.ASSERTS),
        ("ATest.java", '@Test @DisplayName("x")\npublic void TestAdd() throws E { add(1, 2); }\n', Checks.RUNS),
        ("ATest.java", "@Test\nvoid TestAdd() { /* assertEquals(3, 4); */ }\n", Checks.NOTHING),
    ],
)
def test_a_test_in_other_languages_checks_what_its_words_say(path: str, source: str, wanted: Checks) -> None:
    [found] = read_tests(path, source.encode())
    assert (found.name, found.checks, found.is_test) == ("TestAdd", wanted, True)


@pytest.mark.parametrize("mark", ["fails", "failing", "failing.each([1])", "concurrent.fails"])
def test_a_javascript_test_that_passes_because_it_fails_is_marked(mark: str) -> None:
    [found] = read_tests("a.test.js", f"test.{mark}('adds', () => {{ expect(add()).toBe(1); }});".encode())
    assert (found.name, found.must_fail) == ("adds", True)


def test_functions_that_assert_for_tests_are_read_too() -> None:
    python = {one.name: one for one in read_tests("test_a.py", PYTHON.format("check(1)").encode())}
    assert (python["check"].checks, python["check"].is_test) == (Checks.ASSERTS, False)
    source = b"const same = (a, b) => {\n  expect(a).toBe(b);\n};\n"
    [script] = read_tests("a.test.js", source)
    assert (script.name, script.checks, script.is_test) == ("same", Checks.ASSERTS, False)


@pytest.mark.parametrize("source", [b"def test_a(:\n", b"\0", b"(" * 10_000, b"x" * 2_000_000])
def test_a_file_that_can_not_be_read_has_no_tests(source: bytes) -> None:
    assert read_tests("test_a.py", source) == []
    assert read_tests("a.test.js", source) == []


@pytest.mark.parametrize("call", ["add().then((sum) => expect(sum).toBe(3))", "expect(add()).resolves.toBe(3)"])
def test_an_arrow_without_a_block_returns_what_is_waited_for(call: str) -> None:
    [found] = read_tests("a.test.js", f"test('adds', () => {call});".encode())
    assert found.checks is Checks.ASSERTS
