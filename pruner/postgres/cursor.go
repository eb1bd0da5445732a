package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prunectl/prunectl/pruner"
)

// place is what a cursor stands for: an age from which on rows are to be examined, in microseconds since 1970 as
// PostgreSQL keeps them, and inside a group of rows of one age also a place in the group.
type place struct {
	Age    int64    `json:"age"`
	Group  bool     `json:"group,omitempty"`
	Key    []string `json:"key,omitempty"`    // the last key of the group so far
	Passed string   `json:"passed,omitempty"` // tid[]: rows of the group that stay, where no key orders them
}

// cursor writes the place down. A plain age is a number, which is all that a log usually shows.
func (p place) cursor() pruner.Cursor {
	if !p.Group {
		return pruner.NewCursor(strconv.FormatInt(p.Age, 10))
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return pruner.NewCursor(string(b))
}

// parsePlace reads a cursor back; the zero cursor is the place at since.
func parsePlace(c pruner.Cursor, since time.Time) (place, error) {
	text := c.String()
	switch {
	case c.IsZero():
		return place{Age: since.UnixMicro()}, nil
	case strings.HasPrefix(text, "{"):
		var p place
		if err := json.Unmarshal([]byte(text), &p); err != nil || !p.Group {
			return place{}, fmt.Errorf("%q is no cursor of this engine", text)
		}
		return p, nil
	default:
		age, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return place{}, fmt.Errorf("%q is no cursor of this engine", text)
		}
		return place{Age: age}, nil
	}
}

// timestamptz writes microseconds so that the server reads them exactly under every DateStyle and time zone. Years beyond
// four digits and before Christ do not come up: a place lies between since and a cutoff.
func timestamptz(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.999999") + "+00"
}
