"""A session of Neovim, headless: it opens a module, hovers, finds a definition and references, and shows a mistake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.test_lsp import LOOP, place

pytest.importorskip("pygls")

SESSION = """
local WAIT = 280000  -- a loaded machine starts the server late
local out = {}
local function ready(what) assert(vim.wait(WAIT, what, 20), 'no answer') end
local id = vim.lsp.start_client({ name = 'hlotext', cmd = { PYTHON, '-m', 'hlotext', 'lsp' }, root_dir = ROOT })
local buffer = vim.api.nvim_get_current_buf()
vim.lsp.buf_attach_client(buffer, id)
ready(function() local c = vim.lsp.get_client_by_id(id); return c and c.initialized end)
local function ask(method, line, column, more)
  local params = { textDocument = vim.lsp.util.make_text_document_params(buffer),
                   position = { line = line, character = column } }
  for key, value in pairs(more or {}) do params[key] = value end
  local answers = vim.lsp.buf_request_sync(buffer, method, params, WAIT)
  return answers[id].result
end
out.hover = ask('textDocument/hover', POSITION[1], POSITION[2]).contents.value
out.definition = ask('textDocument/definition', POSITION[1], POSITION[2]).range.start.line
out.references = #ask('textDocument/references', POSITION[1], POSITION[2], { context = { includeDeclaration = true } })
vim.api.nvim_buf_set_text(buffer, POSITION[1], POSITION[2], POSITION[1], POSITION[2] + 1, { 'nothing' })
ready(function() return #vim.diagnostic.get(buffer) > 0 end)
local found = vim.diagnostic.get(buffer)[1]
out.mistake = { found.lnum, found.code, found.message }
vim.cmd('undo')
ready(function() return #vim.diagnostic.get(buffer) == 0 end)
out.left = #vim.diagnostic.get(buffer)
local file = io.open(OUT, 'w')
file:write(vim.fn.json_encode(out))
file:close()
vim.lsp.stop_client(id)
vim.cmd('qa!')
"""


@pytest.mark.skipif(
    shutil.which("nvim") is None, reason="Neovim is not installed (Debian: apt install neovim)"
)
def test_session(tmp_path: Path) -> None:
    module, out, script = tmp_path / "module.hlo", tmp_path / "out.json", tmp_path / "session.lua"
    module.write_text(LOOP, "utf-8")
    line, column = place(LOOP, "add(%x, %x)", 5)
    head = f"PYTHON = {json.dumps(sys.executable)}; ROOT = {json.dumps(str(tmp_path))}; OUT = {json.dumps(str(out))}; "
    script.write_text(f"{head}POSITION = {{ {line}, {column} }}\n{SESSION}", "utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    subprocess.run(
        ["nvim", "--clean", "--headless", str(module), "-c", f"luafile {script}", "-c", "cq"],
        check=True,
        timeout=900,
        capture_output=True,
        env=environment,
    )
    found = json.loads(out.read_text("utf-8"))
    assert "**x**" in found["hover"]
    assert "f32\\[1000\\]{0}" in found["hover"]
    assert found["definition"] == place(LOOP, "%x =")[0]
    assert found["references"] == 2
    assert found["mistake"][:2] == [line, "X102"]
    assert found["left"] == 0
