package httpapi

import (
	_ "embed"
	"strconv"
)

// The OpenAPI 3.1 documents. A test drives every handler through every answer that they list.
var (
	//go:embed openapi/order-matcher.json
	openAPIOrderMatcher []byte
	//go:embed openapi/trade-processor.json
	openAPITradeProcessor []byte
	//go:embed openapi/account-service.json
	openAPIAccountService []byte
	//go:embed openapi/reference-data.json
	openAPIReferenceData []byte
)

// showDocument is GET /openapi.json.
func (v *serviceRequest) showDocument(document []byte) problem {
	return v.send(200, append(v.begin(), document...))
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
