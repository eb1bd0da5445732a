package main

import (
	"io"
	"os"

	"github.com/mattn/go-runewidth"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// liveLine is a line on a terminal that is redrawn in its place. A nil one does nothing.
type liveLine struct {
	bar   *progressbar.ProgressBar
	width func() int
}

// newLiveLine returns nil where w is no terminal.
func newLiveLine(w io.Writer) *liveLine {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &liveLine{
		bar: progressbar.NewOptions(-1,
			progressbar.OptionSetWriter(f),
			progressbar.OptionSpinnerCustom([]string{"|", "/", "-", `\`}),
			progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine that draws by itself
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionClearOnFinish(),
		),
		width: func() int {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
			return 80
		},
	}
}

// draw shows text, cut to the terminal's width: a line that wraps could not be taken away again.
func (l *liveLine) draw(text string) {
	if l != nil {
		const around = 6 // the spinner and its blanks
		l.bar.Describe(runewidth.Truncate(text, max(10, l.width()-around), ""))
	}
}

func (l *liveLine) clear() {
	if l != nil {
		_ = l.bar.Clear()
	}
}
