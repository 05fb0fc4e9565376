"""What a hostile agent can leave behind to attack mam's git, as shell scripts. A command that runs creates TRAP."""

from __future__ import annotations

_AS = "git -c user.name=a -c user.email=a@x"
NESTED = f"git init -q kit; echo 1 > kit/f; git -C kit add f; {_AS} -C kit commit -qm 1\n"
TRACKED = f"{NESTED}git add kit 2> ../said\n"
COMMITTED = f"{TRACKED}{_AS} commit -qm kit\n"
_ARMED = """
git -C kit config filter.x.clean 'touch TRAP; cat'
git -C kit config core.fsmonitor 'touch TRAP'
echo "* filter=x" > "$(git -C kit rev-parse --absolute-git-dir)/info/attributes"
echo 2 > kit/f
"""
_HOOKS = """
mkdir -p "$D"
for n in pre-commit prepare-commit-msg commit-msg post-commit post-index-change reference-transaction \\
         pre-push post-checkout post-rewrite pre-auto-gc fsmonitor-watchman; do
    printf '#!/bin/sh\\ntouch TRAP\\n' > "$D/$n"; chmod +x "$D/$n"
done
"""

LEFTOVERS = {
    "a nested repository that the agent added": TRACKED + _ARMED,
    "a nested repository that the agent committed": COMMITTED + _ARMED,
    "a nested repository that nothing tracks": NESTED + _ARMED,
    "a submodule whose update is a command": TRACKED + """
        git config submodule.kit.update '!touch TRAP'
        git config submodule.kit.url ./kit
        git config submodule.kit.ignore none
        git config submodule.recurse true
        git config status.submoduleSummary true
        git config diff.submodule log
        git config diff.ignoreSubmodules none
        printf '[submodule "kit"]\\npath=kit\\nurl=./kit\\nupdate=checkout\\n' > .gitmodules
    """ + _ARMED,
    "the .git file of a directory": TRACKED + """
        mv kit/.git ../elsewhere
        git --git-dir=../elsewhere config core.worktree "$PWD/kit"
        echo "gitdir: $(cd ..; pwd)/elsewhere" > kit/.git
    """ + _ARMED,
    "the .git file of the worktree": """
        git init -q ../evil
        git -C ../evil config core.fsmonitor 'touch TRAP'
        git -C ../evil config filter.x.clean 'touch TRAP; cat'
        echo "* filter=x" > .gitattributes
        echo "gitdir: $(cd ..; pwd)/evil/.git" > .git
    """,
    "another repository behind the worktree's own": """
        git init -q ../evil
        git -C ../evil config filter.x.clean 'touch TRAP; cat'
        echo "* filter=x" > .gitattributes
        echo "$(cd ..; pwd)/evil/.git" > "$(git rev-parse --git-dir)/commondir"
    """,
    "hooks in the repository": 'D="$(git rev-parse --git-common-dir)/hooks"' + _HOOKS,
    "hooks in the work tree": "git config core.hooksPath \"$PWD/hooks\"; D=hooks" + _HOOKS,
    "commands in the settings": """
        echo '* diff=x merge=x' > .gitattributes
        for k in core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy sequence.editor \\
                 core.alternateRefsCommand diff.external diff.x.command diff.x.textconv merge.x.driver gpg.program \\
                 gpg.ssh.program gpg.ssh.defaultKeyCommand credential.helper trailer.x.command remote.origin.vcs \\
                 remote.origin.uploadpack remote.origin.receivepack uploadpack.packObjectsHook gc.recentObjectsHook \\
                 interactive.diffFilter pager.status pager.diff; do
            git config $k 'touch TRAP'
        done
        git config gc.auto 1; git config push.gpgSign if-asked
        git config commit.verbose true; git config log.showSignature true
    """,
    "signatures": "git config commit.gpgSign true; git config gpg.program \"$PWD/sign\"\n"
    "printf '#!/bin/sh\\ntouch TRAP\\n' > sign; chmod +x sign",
    "a filter": "git config filter.x.clean 'touch TRAP; cat'; echo '* filter=x' > .gitattributes",
    "a filter that is included for a branch": """
        printf '[filter "x"]\\nclean = touch TRAP; cat\\nsmudge = touch TRAP; cat\\n' > ../included
        git config 'includeIf.onbranch:mam/**.path' "$(cd ..; pwd)/included"
        D="$(git rev-parse --git-common-dir)/info"; mkdir -p "$D"; echo '* filter=x' > "$D/attributes"
    """,
    "a filter that is included for worktrees": """
        printf '[filter "x"]\\nclean = touch TRAP; cat\\nsmudge = touch TRAP; cat\\n' > ../included
        git config 'includeIf.gitdir:**/worktrees/**.path' "$(cd ..; pwd)/included"
        D="$(git rev-parse --git-common-dir)/info"; mkdir -p "$D"; echo '* filter=x' > "$D/attributes"
    """,
    "filters with strange names": """
        cat >> "$(git rev-parse --git-common-dir)/config" <<'END'
[filter ""]
    clean = touch TRAP; cat
[filter "a=b"]
    clean = touch TRAP; cat
[filter.Dotted]
    CLEAN = touch TRAP; cat
[FILTER "ä.clean.ö"]
    Process = touch TRAP
    required
END
        printf '\\n[filter "\\377"]\\n    clean = touch TRAP; cat\\n' >> "$(git rev-parse --git-common-dir)/config"
        printf '*.%s filter=%b\\n' a '' b a=b c dotted d ä.clean.ö e '\\0377' > .gitattributes
        for n in a b c d e; do echo x > x.$n; done
    """,
    "settings of this worktree alone": """
        git config extensions.worktreeConfig true
        git config --worktree core.fsmonitor 'touch TRAP'
        git config --worktree filter.x.process 'touch TRAP'
        echo '* filter=x' > .gitattributes
    """,
    "addresses that become commands": """
        git config 'url.ext::touch TRAP.insteadOf' file://
        git config 'url.ext::touch TRAP .pushInsteadOf' /
        git config remote.origin.pushurl 'ext::touch TRAP'
        git config protocol.allow always
        git config protocol.ext.allow always
    """,
    "a filter that is included for a remote": """
        git remote add evil https://example.org/evil
        printf '[filter "x"]\\nclean = touch TRAP; cat\\nprocess = touch TRAP\\n' > ../included
        git config 'includeIf.hasconfig:remote.*.url:https://example.org/**.path' "$(cd ..; pwd)/included"
        echo '* filter=x' > .gitattributes
    """,
    "a link in place of a .git": """
        git init -q ../evil; git -C ../evil config core.worktree "$PWD/kit"
        git -C ../evil config filter.x.clean 'touch TRAP; cat'; git -C ../evil config core.fsmonitor 'touch TRAP'
        echo '* filter=x' > ../evil/.git/info/attributes
        mkdir kit; echo 1 > kit/f; ln -s "$(cd ..; pwd)/evil/.git" kit/.git
    """,
    "a bare repository in the work tree": """
        git init -q --bare kit; git -C kit config core.bare false; git -C kit config core.worktree "$PWD/kit"
        git -C kit config core.fsmonitor 'touch TRAP'; git -C kit config filter.x.clean 'touch TRAP; cat'
        echo '* filter=x' > kit/info/attributes; mkdir -p kit/hooks
        for n in post-index-change post-checkout; do printf '#!/bin/sh\\ntouch TRAP\\n' > kit/hooks/$n; done
        chmod +x kit/hooks/*
    """,
    "settings that other settings hide": """
        D="$(git rev-parse --git-common-dir)"; printf '[include]\\n\\tpath = config.d/../config.d/one\\n' >> "$D/config"
        mkdir -p "$D/config.d"; printf '[include]\\n\\tpath = two\\n' > "$D/config.d/one"
        printf '[core]\\n\\tfsmonitor = touch TRAP\\n[filter "x"]\\n\\tclean = touch TRAP; cat\\n' > "$D/config.d/two"
        echo '* filter=x' > .gitattributes
    """,
    "a promise that another host has the objects": """
        git config core.repositoryFormatVersion 1
        git config extensions.partialClone evil
        git config remote.evil.promisor true
        git config remote.evil.url 'ext::touch TRAP'
        git config protocol.ext.allow always
        echo here > here; git add here; git -c user.name=a -c user.email=a@x commit -qm here
        tree=$(git rev-parse 'HEAD^{tree}'); D="$(git rev-parse --git-common-dir)/objects"
        rm -f "$D/$(echo $tree | cut -c1-2)/$(echo $tree | cut -c3-)"
    """,
}  # fmt: skip

BROKEN = ("another repository behind the worktree's own", "a promise that another host has the objects")
"""After these mam cannot commit, and the job ends in error."""

MESSY = """
mkdir -p a b/c d; for n in a/1 a/2 b/c/3 d/4 e f g 'sp ace' conflict; do echo $n > "$n"; done; chmod +x e
echo '*.log' > .gitignore; git add .; git -c user.name=a -c user.email=a@x commit -qm base
rm a/1; rm -r b; echo file > b; rm e; mkdir e; echo inner > e/inner; rm -r d; ln -s a d; rm f; ln -s /nowhere f
chmod +x g; mv 'sp ace' "$(printf 'n\\nl\\t\\377')"; echo x > ignored.log; : > empty; mkdir hollow; mkfifo pipe
echo staged > staged; git add staged; rm staged; echo intent > intent; git add -N intent
one=$(echo 1 | git hash-object -w --stdin); two=$(echo 2 | git hash-object -w --stdin); git rm -q --cached conflict
printf '100644 %s %s\\tconflict\\n' $one 1 $one 2 $two 3 | git update-index --index-info
"""
"""Every kind of change that a work tree can have, nested repositories aside."""
