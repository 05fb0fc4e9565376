"""What agents, prompts and names may contain to attack a page. Each must be shown as text, or not at all."""

from __future__ import annotations

XSS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '"><script>alert(1)</script>',
    "' onmouseover='alert(1)",
    "</textarea><script>alert(1)</script>",
    "</pre><iframe src=javascript:alert(1)>",
    "<!--<img src=--><img src=x onerror=alert(1)//>",
    "<a href=javascript:alert(1)>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "[x](/jobs/all)",
    "[x](//evil.example/)",
    "![x](https://evil.example/pixel.png)",
    '![x](x "onerror=alert(1)")',
    '<https://evil.example/" onclick="alert(1)>',
    "<javascript:alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    '```"onclick=alert(1)\n<script>alert(1)</script>\n```',
    "```<script>\nx\n```",
    "| <script>alert(1)</script> |\n|---|\n| <b onclick=alert(1)>x |",
    "{{ 7*7 }}{% raw %}${alert(1)}",
    "<form action=/jobs/all method=post><button>x",
    "<style>*{display:none}</style><link rel=stylesheet href=//evil.example/x.css>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=//evil.example/>",
    "&lt;script&gt;alert(1)&lt;/script&gt;<scr<script>ipt>",
    "\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07",
    "\x1b[31m<script>alert(1)</script>\x1b[0m",
)
HIDDEN = (
    "\u202egnp.exe",
    "a\u2066b\u2069",
    "zero\u200bwidth",
    "\ufeffbom",
    "line\u2028separator",
    "nul\x00",
    "\x9b31m",
)
HUGE = "A" * 3_000_000

FORBIDDEN = (
    "<script",
    "<img",
    "<svg",
    "<iframe",
    "<form",
    "<style",
    "<link",
    "<base",
    "<meta",
    "<a href=javascript",
    'href="javascript',
    'href="data',
    'href="vbscript',
    'href="/',
    "<b ",
    "<textarea",
    "<button",
)
"""What the HTML of a hostile text must not contain."""


def is_inert(html: str) -> bool:
    lowered = html.lower()
    return not any(mark in lowered for mark in FORBIDDEN) and not any(
        mark in html for mark in ("\u202e", "\u2066", "\u200b", "\x00", "\x1b", "\x9b")
    )
