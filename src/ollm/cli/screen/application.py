"""The toolkit's application that the chat runs in: layout, keys, colours and waiting times."""

from __future__ import annotations

from prompt_toolkit.enums import EditingMode
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from ollm.cli.screen import keys, layout
from ollm.cli.screen.output import open_output
from ollm.cli.screen.resizing import ChatApplication
from ollm.cli.screen.screen_options import ScreenOptions
from ollm.cli.screen.view import ScreenView

ESCAPE_WAIT_SECONDS = 0.25  # how long Esc waits for the key that would make it Alt-something
VI_WAIT_SECONDS = 1.0  # the same for keys of several letters


def build_chat_application(actions: keys.KeyActions, view: ScreenView, options: ScreenOptions) -> ChatApplication:
    """Inline, so that the terminal's own scroll-back stays; what it drew is taken away when it is done."""
    app = ChatApplication(
        layout=layout.build_chat_layout(
            actions.buffer, view.render_live, view.render_question, view.render_footer, view.render_prompt
        ),
        key_bindings=keys.build_key_bindings(actions),
        style=Style.from_dict(options.theme.toolkit),
        color_depth=None if options.colour else ColorDepth.DEPTH_1_BIT,
        editing_mode=EditingMode.VI if options.vi else EditingMode.EMACS,
        output=open_output(),
        full_screen=False,
        mouse_support=False,
        erase_when_done=True,
    )
    app.wraps_again = options.wraps_again
    app.ttimeoutlen = 0.05
    app.timeoutlen = VI_WAIT_SECONDS if options.vi else ESCAPE_WAIT_SECONDS
    return app
