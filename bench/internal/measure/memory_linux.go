package measure

import (
	"bytes"
	"fmt"
	"os"
)

// peak is the most memory that a process has had at one time, in 10^6 bytes. The usage that is told when a process has
// ended would not do: it begins with what the one that started it had.
func peak(pid int) (mb float64, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(status) {
		var kib int
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
			return float64(kib) * 1024 / 1e6, true
		}
	}
	return 0, false
}
