package machine

import "errors"

// ErrNoPinning is returned where the system cannot bind threads to processors.
var ErrNoPinning = errors.New("this system cannot bind threads to processors")
