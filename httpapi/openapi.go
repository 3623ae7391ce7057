package httpapi

import (
	_ "embed"
	"strconv"
)

// openAPIOrderMatcher is the OpenAPI 3.1 document of the order-matcher. A test
// drives every handler through every answer that it names.
//
//go:embed openapi/order-matcher.json
var openAPIOrderMatcher []byte

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
