package ring

import "errors"

// ErrLapped reports that a free reader was overtaken by the producer and has lost slots.
var ErrLapped = errors.New("ring: reader was lapped")
