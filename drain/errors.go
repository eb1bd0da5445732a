package drain

import (
	"errors"
	"fmt"

	"github.com/prunectl/prunectl/pruner"
)

// ErrBounds is wrapped by the error of a bound, or of a setting of a [Loop], that is negative, too large, or zero where
// zero means no default. Nothing was touched.
var ErrBounds = errors.New("wrong bounds")

// ErrContract is wrapped by the error of a Pruner that breaks the contract of [pruner.Pruner] in a way that a drain can
// see: it goes in circles, examines more than its limit, removes more than it examined, or removes more children than its
// limit without examining the row they belong to. It is a fault of the Pruner.
var ErrContract = errors.New("the pruner breaks its contract")

func boundsError(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrBounds, field, fmt.Sprintf(format, args...))
}

// checkResult finds what no right Pruner answers.
func checkResult(res pruner.Result, limit int) error {
	switch {
	case res.Examined > limit:
		return fmt.Errorf("%w: %d rows examined under a limit of %d", ErrContract, res.Examined, limit)
	case res.Removed < 0 || res.Removed > res.Examined:
		return fmt.Errorf("%w: %d rows removed of %d examined", ErrContract, res.Removed, res.Examined)
	case res.Children < 0 || res.Examined == 0 && res.Children > limit:
		return fmt.Errorf("%w: %d children removed under a limit of %d, with %d rows examined", ErrContract, res.Children, limit, res.Examined)
	}
	return nil
}
