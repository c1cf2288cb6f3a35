"""Projects in seven languages, each good, and each broken in three ways: it does not compile, a test fails, lint."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outside.toolchains import Toolchains

Files = Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """A good project, and what to put over it to break it; where each rule must then point."""

    good: Files
    broken: Files
    failing: Files
    untidy: Files
    places: tuple[str, str, str]
    """Of the compile error, of the failing test, of what a linter minds."""
    needs: tuple[str, ...] = ()
    """Programs of this machine."""
    tools: tuple[str, ...] = field(default=())
    """Programs whose versions stand in the evidence of the tests."""


PYTHON = Sample(
    good={
        "pyproject.toml": "[project]\nname = 'calc'\n",
        "calc.py": "def add(a, b):\n    return a + b\n",
        "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    },
    broken={"calc.py": "def add(a, b:\n    return a + b\n"},
    failing={"calc.py": "def add(a, b):\n    return a - b\n"},
    untidy={"calc.py": "import os\n\n\ndef add(a, b):\n    return a + b\n"},
    places=("calc.py:1:8", "test_calc.py:5", "calc.py:1:8"),
    tools=("pytest", "python3"),
)
JAVASCRIPT = Sample(
    good={
        "package.json": '{"name": "calc", "type": "module", "scripts": {"test": "node --test"}}',
        "calc.js": "export function add(a, b) {\n  return a + b;\n}\n",
        "calc.test.js": (
            "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from './calc.js';\n"
            "test('adds', () => {\n  assert.strictEqual(add(1, 2), 3);\n});\n"
        ),
        "eslint.config.js": "export default [{ rules: { 'no-unused-vars': 'error' } }];\n",
    },
    broken={"calc.js": "export function add(a, b) {\n  return a + ;\n}\n"},
    failing={"calc.js": "export function add(a, b) {\n  return a - b;\n}\n"},
    untidy={"calc.js": "export function add(a, b) {\n  const c = 1;\n  return a + b;\n}\n"},
    places=("calc.js:2:14", "calc.test.js:5:10", "calc.js:2:9"),
    tools=("node",),
)
TYPESCRIPT = Sample(
    good={
        "package.json": '{"name": "calc", "type": "module", "scripts": {"test": "node --test"}}',
        "tsconfig.json": (
            '{"compilerOptions": {"strict": true, "target": "es2022", "module": "nodenext"}, "include": ["src"]}'
        ),
        "src/calc.ts": "export function add(a: number, b: number): number {\n  return a + b;\n}\n",
        "calc.test.mjs": "import test from 'node:test';\ntest('is there', () => {});\n",
    },
    broken={"src/calc.ts": "export function add(a: number, b: number): number {\n  return a + 'b';\n}\n"},
    failing={
        "calc.test.mjs": "import test from 'node:test';\ntest('is there', () => {\n  throw new Error('no');\n});\n"
    },
    untidy={"src/calc.ts": "export function add(a: number, b): number {\n  return a + b;\n}\n"},
    places=("src/calc.ts:2:3", "calc.test.mjs:3:9", "src/calc.ts:1:32"),
    tools=("node",),
)
GO = Sample(
    good={
        "go.mod": "module example.com/calc\n\ngo 1.20\n",
        "calc.go": "package calc\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n",
        "calc_test.go": (
            'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
            '\tif got := Add(1, 2); got != 3 {\n\t\tt.Errorf("Add(1, 2) = %d, want 3", got)\n\t}\n}\n'
        ),
    },
    broken={"calc.go": "package calc\n\n// Add adds.\nfunc Add(a, b int) int { return a + c }\n"},
    failing={"calc.go": "package calc\n\n// Add adds.\nfunc Add(a, b int) int { return a - b }\n"},
    untidy={"calc.go": "package calc\n\n// Add adds.\nfunc Add(a, b int) int { return a+b }\n"},
    places=("calc.go:4:37", "calc_test.go:7", "calc.go:4:1"),
    tools=("go",),
)
_RUST_TESTS = (
    "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n"
    "        assert_eq!(add(1, 2), 3);\n    }\n}\n"
)
RUST = Sample(
    good={
        "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n" + _RUST_TESTS,
    },
    broken={"src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    a + c\n}\n" + _RUST_TESTS},
    failing={"src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n" + _RUST_TESTS},
    untidy={"src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 {\n    return a + b;\n}\n" + _RUST_TESTS},
    places=("src/lib.rs:2:9", "src/lib.rs:11:9", "src/lib.rs:2:5"),
    needs=("cargo", "rustc", "cc"),
    tools=("cargo", "rustc"),
)
JAVA = Sample(
    good={
        "src/Calc.java": "public class Calc {\n    static int add(int a, int b) {\n        return a + b;\n    }\n}\n",
        "test/CalcTest.java": (
            "import static org.junit.Assert.assertEquals;\nimport org.junit.Test;\n\npublic class CalcTest {\n"
            "    @Test\n    public void adds() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n}\n"
        ),
    },
    broken={
        "src/Calc.java": "public class Calc {\n    static int add(int a, int b) {\n        return a + c;\n    }\n}\n"
    },
    failing={
        "src/Calc.java": "public class Calc {\n    static int add(int a, int b) {\n        return a - b;\n    }\n}\n"
    },
    untidy={
        "src/Calc.java": (
            "public class Calc {\n    public static int add(int a, int b) {\n"
            "        java.util.List l = null;\n        return a + b;\n    }\n}\n"
        )
    },
    places=("src/Calc.java:3:20", "test/CalcTest.java:7:1", "src/Calc.java:3:18"),
    needs=("javac", "java"),
    tools=("java", "javac"),
)
_C_MAIN = "#include <assert.h>\nint main(void) {\n  assert(add(1, 2) == 3);\n}\n"
C = Sample(
    good={
        "CMakeLists.txt": (
            "cmake_minimum_required(VERSION 3.20)\nproject(calc C)\nenable_testing()\n"
            "add_executable(calc_test calc.c)\nadd_test(NAME adds COMMAND calc_test)\n"
        ),
        "calc.c": "int add(int a, int b) { return a + b; }\n" + _C_MAIN,
    },
    broken={"calc.c": "int add(int a, int b) { return a + c; }\nint main(void) { return add(1, 2) != 3; }\n"},
    failing={"calc.c": "int add(int a, int b) { return a - b; }\n" + _C_MAIN},
    untidy={"calc.c": "int add(int a, int b) { int c; return a + b; }\nint main(void) { return add(1, 2) != 3; }\n"},
    places=("calc.c:1:36", "calc.c:4", "calc.c:1:29"),
    needs=("cmake", "cc", "make"),
    tools=("cmake",),
)
SAMPLES = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "typescript": TYPESCRIPT,
    "go": GO,
    "rust": RUST,
    "java": JAVA,
    "c": C,
}


def equip(project: Path, language: str, chains: Toolchains) -> dict[str, Any]:
    """Put what people install into a project; the parameters that its checks need."""
    if language in {"javascript", "typescript"}:
        shutil.copytree(chains.node_modules, project / "node_modules", symlinks=True, copy_function=os.link)
    if language == "go":
        shutil.copytree(chains.go_cache, project / ".cache", copy_function=os.link)
        return {"env": {"GOCACHE": str(project / ".cache")}}
    if language == "java":
        (project / "lib").mkdir()
        for jar in chains.junit:
            shutil.copy(jar, project / "lib")
    return {}
