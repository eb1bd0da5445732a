package inboxoutbox

import (
	"fmt"
	"time"
)

// Lease is a holder's right to a partition of a handler's work, until it expires. An
// expired lease is nobody's, also where nobody took it since: a cleanup may have removed
// it.
type Lease struct {
	Handler, Partition string
	Holder             string
	Token              Token     // names this hold; "" where it is somebody else's
	ExpiresAt          time.Time // by the database's clock, in UTC
}

// CheckLease is an error where a lease can not be acquired: [ErrClaim], with the reason.
func CheckLease(handler, holder string) error {
	switch {
	case handler == "":
		return fmt.Errorf("%w: a lease for no handler", ErrClaim)
	case holder == "":
		return fmt.Errorf("%w: a lease of handler %q without a holder", ErrClaim, handler)
	}
	return nil
}
