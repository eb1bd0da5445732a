package proctest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Buffer takes what a process prints, and can be read meanwhile. The zero value
// is empty; it must not be copied.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write adds to the buffer. It has no error.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is all that was printed so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Await waits until text was printed. The test fails where it was not within
// patience, and says what was.
func (b *Buffer) Await(t testing.TB, text string, patience time.Duration) {
	t.Helper()
	for end := time.Now().Add(patience); !strings.Contains(b.String(), text); time.Sleep(5 * time.Millisecond) { // between looks
		if time.Now().After(end) {
			t.Fatalf("not within %s: %q is printed; so far:\n%s", patience, text, b.String())
		}
	}
}
