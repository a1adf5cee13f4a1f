// The parts of CodeMirror that the editors of the workbench use.
export { Transaction } from "@codemirror/state";
export { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
export { autocompletion, completionKeymap } from "@codemirror/autocomplete";
export { lintGutter, setDiagnostics } from "@codemirror/lint";
export { SQLDialect, sql } from "@codemirror/lang-sql";
export { yaml } from "@codemirror/lang-yaml";
export { tags } from "@lezer/highlight";
