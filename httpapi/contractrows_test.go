package httpapi

import (
	"fmt"
	"slices"
	"strings"
)

func enforcedRows() (rows []row) {
	for _, q := range accountRequests {
		rows = append(rows,
			row{q.request, q.body, "", 401, CodeUnauthorized},
			row{q.request, q.body, "bad", 401, CodeUnauthorized},
			row{q.request, q.body, "expired", 401, CodeUnauthorized},
			row{q.request, q.body, "two", 403, CodeNotEntitled})
	}
	for _, q := range accountRequests {
		status := 200
		if strings.HasPrefix(q.request, "POST") && !strings.Contains(q.request, "ord-1") &&
			!strings.Contains(q.request, "/swap") {
			status = 201
		}
		rows = append(rows, row{q.request, q.body, "one", status, ""})
	}
	return append(rows,
		row{"GET /orders", "", "two", 200, ""},
		row{"GET /contracts", "", "two", 200, ""},
		row{"GET /contracts/SW-99", "", "two", 404, CodeContractNotFound},
		row{"POST /swaps", "{", "two", 400, CodeMalformedBody},
		row{"POST /risk/extract", "{", "one", 403, CodeAdminRequired},
		row{"GET /orders/ord-99", "", "two", 404, CodeOrderNotFound},
		row{"POST /orders/ord-99/cancel", "", "two", 404, CodeOrderNotFound},
		row{"POST /orders", goodOrder, "admin", 201, ""},
		row{"GET /book/AAA", "", "", 200, ""},
		row{"GET /health", "", "", 200, ""},
		row{"GET /openapi.json", "", "", 200, ""},
		// The order of checks: a token before the body, the body before the entitlement.
		row{"POST /orders", "{", "", 401, CodeUnauthorized},
		row{"POST /orders", "{", "two", 400, CodeMalformedBody},
		row{"POST /prices", "{", "one", 403, CodeAdminRequired},
		row{"POST /nowhere", "{", "", 404, CodeNotFound},
		row{"DELETE /orders", "", "", 405, CodeMethodNotAllowed},
		row{"POST /orders/batch", `[` + goodOrder +
			`,{"accountId":2,"security":"AAA","side":"Buy","quantity":1,"limitPrice":1}]`,
			"one", 403, CodeNotEntitled})
}

func openRows() (rows []row) {
	for _, q := range adminRequests {
		rows = append(rows,
			row{q.request, q.body, "", 401, CodeUnauthorized},
			row{q.request, q.body, "bad", 401, CodeUnauthorized},
			row{q.request, q.body, "one", 403, CodeAdminRequired})
		status := 200
		if q.request == "POST /prices" || q.request == "POST /risk/extract" {
			status = 202
		}
		rows = append(rows, row{q.request, q.body, "admin", status, ""})
	}
	for _, path := range bodied {
		rows = append(rows,
			row{"POST " + path, "{", "admin", 400, CodeMalformedBody},
			row{"POST " + path, `{"nonsense":1}`, "admin", 400, CodeMalformedBody})
	}
	for _, request := range historyRequests {
		rows = append(rows,
			row{request, "", "", 401, CodeUnauthorized},
			row{request, "", "bad", 401, CodeUnauthorized},
			row{request, "", "one", 403, CodeAdminRequired},
			row{request, "", "admin", 200, ""},
			row{request + "?fromSeq=0", "", "one", 403, CodeAdminRequired})
	}
	for _, query := range []string{"fromSeq=0", "toSeq=0", "fromSeq=-1", "fromSeq=x", "fromSeq=1.0",
		"fromSeq=", "fromSeq=3&toSeq=2",
		"fromSeq=9223372036854775808", "toSeq=1&toSeq=1", "from=1", "fromSeq=01", "fromSeq=%2B1"} {
		rows = append(rows, row{"GET /regulatory/report?" + query, "", "admin", 400, CodeBadRequest})
	}
	for _, query := range []string{"sinceSeq=-1", "sinceSeq=x", "limit=0", "limit=1001", "cursor=x"} {
		rows = append(rows, row{"GET /recon/full-history/trades?" + query, "", "admin", 400,
			CodeBadRequest})
	}
	return append(rows,
		row{"POST /recon/full-history/reindex", `{"a":1}`, "admin", 400, CodeMalformedBody},
		row{"POST /recon/full-history/reindex", `{}`, "admin", 200, ""},
		row{"GET /recon/full-history/trades?sinceSeq=1&limit=1", "", "admin", 200, ""},
		row{"GET /regulatory/report?fromSeq=2&toSeq=3", "", "admin", 200, ""},
		row{"GET /regulatory/report?fromSeq=1000&toSeq=9223372036854775807", "", "admin", 400,
			CodeBadRequest},
		row{"POST /orders", goodOrder, "", 201, ""},
		row{"POST /orders", goodOrder, "bad", 201, ""}, // ignored while entitlements are off
		row{"POST /orders", orderBody("1", "Buy", "10", "100", `,"clientOrderId":"c-1"`), "", 201, ""},
		row{"POST /orders", orderBody("1", "Buy", "11", "100", `,"clientOrderId":"c-1"`), "", 409,
			CodeTermsDiffer},
		row{"POST /orders", orderBody("9", "Buy", "10", "100", ""), "", 422, CodeRiskRefused},
		row{"POST /orders/batch", "[" + goodOrder + "," + orderBody("9", "Buy", "1", "1", "") + "]",
			"", 201, ""},
		row{"POST /orders/batch", "[" + orderBody("1", "Buy", "12", "100", `,"clientOrderId":"c-1"`) +
			"]", "", 201, ""},
		row{"POST /orders/batch", "[]", "", 400, CodeMalformedBody},
		row{"POST /trades", goodTrade, "", 201, ""},
		row{"POST /trades", `{"accountId":1,"security":"BBB","side":"Buy","quantity":1}`, "", 422,
			CodeRiskRefused},
		row{"POST /trades",
			`{"clientOrderId":"c-1","accountId":1,"security":"AAA","side":"Buy","quantity":1}`, "", 409,
			CodeTermsDiffer},
		row{"GET /orders", "", "", 200, ""},
		row{"GET /orders?status=open&limit=1", "", "", 200, ""},
		row{"GET /orders?status=FILLED&security=AAA&accountId=1", "", "", 200, ""},
		row{"GET /orders?security=NONE", "", "", 200, ""},
		row{"GET /orders?status=OPEN", "", "", 400, CodeBadRequest},
		row{"GET /orders?limit=0", "", "", 400, CodeBadRequest},
		row{"GET /orders?limit=1001", "", "", 400, CodeBadRequest},
		row{"GET /orders?limit=1&limit=1", "", "", 400, CodeBadRequest},
		row{"GET /orders?accountId=-1", "", "", 400, CodeBadRequest},
		row{"GET /orders?accountId=4294967296", "", "", 400, CodeBadRequest},
		row{"GET /orders?cursor=AAAA", "", "", 400, CodeBadRequest},
		row{"GET /orders?nonsense=1", "", "", 400, CodeBadRequest},
		row{"GET /orders?security=%4", "", "", 400, CodeBadRequest},
		row{"GET /orders?security=", "", "", 400, CodeBadRequest},
		row{"GET /orders?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", "", "", 400, CodeBadRequest},
		row{"GET /orders/ord-1", "", "", 200, ""},
		row{"GET /orders/ord-99", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/ord-01", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/ord-4294967297", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/ord-99999999999999999999", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/x", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/" + strings.Repeat("a", 65), "", "", 400, CodeBadRequest},
		row{"POST /orders/ord-99/cancel", "", "", 404, CodeOrderNotFound},
		row{"POST /orders/ord-2/cancel", "", "", 409, CodeOrderTerminal},
		row{"POST /orders/ord-99/replace", goodReplace, "", 404, CodeOrderNotFound},
		row{"POST /orders/ord-2/replace", goodReplace, "", 409, CodeOrderTerminal},
		row{"POST /orders/ord-1/replace", `{"quantity":8,"limitPrice":101.0005}`, "", 422,
			CodeRiskRefused},
		row{"POST /orders/ord-1/replace", goodReplace, "", 200, ""},
		row{"POST /orders/ord-1/cancel", "{}", "", 200, ""},
		row{"POST /orders/ord-1/cancel", "", "", 409, CodeOrderTerminal},
		row{"GET /positions", "", "", 200, ""},
		row{"GET /positions?accountId=1&limit=1", "", "", 200, ""},
		row{"GET /positions?accountId=99", "", "", 200, ""},
		row{"GET /positions?cursor=x", "", "", 400, CodeBadRequest},
		row{"GET /book/AAA", "", "", 200, ""},
		row{"GET /book/BRK.B?depth=1", "", "", 200, ""},
		row{"GET /book/NONE", "", "", 404, CodeSecurityNotFound},
		row{"GET /book/AAA?depth=0", "", "", 400, CodeBadRequest},
		row{"GET /recon/trades/blotter?sinceSeq=1&limit=1", "", "admin", 200, ""},
		row{"GET /recon/trades/blotter?sinceSeq=-1", "", "admin", 400, CodeBadRequest},
		row{"POST /prices", `[{"security":"AAA","price":1},{"security":"NONE","price":1}]`, "admin", 404,
			CodeSecurityNotFound},
		row{"POST /prices", `[]`, "admin", 400, CodeMalformedBody},
		row{"POST /risk/control/account", `{"accountId":99,"enabled":true}`, "admin", 404,
			CodeAccountNotFound},
		row{"POST /risk/control/security", `{"security":"NONE","enabled":true,"halted":false}`, "admin",
			404, CodeSecurityNotFound},
		row{"POST /risk/control/restriction", `{"security":"NONE","restricted":true}`, "admin", 404,
			CodeSecurityNotFound},
		row{"POST /risk/control/policy", `{"policyVersion":0,"killSwitch":false}`, "admin", 400,
			CodeMalformedBody},
		row{"POST /risk/control/limits", `{"policyVersion":1,"limits":{}}`, "admin", 400,
			CodeMalformedBody},
		row{"POST /risk/control/accounts/99/limits", goodOwnLimits, "admin", 404, CodeAccountNotFound},
		row{"POST /risk/control/accounts/one/limits", goodOwnLimits, "admin", 400, CodeBadRequest},
		row{"POST /risk/control/accounts/1", goodOwnLimits, "admin", 404, CodeNotFound},
		row{"GET /risk/control/accounts/1/limits", "", "admin", 405, CodeMethodNotAllowed},
		row{"GET /health", "", "", 200, ""},
		row{"GET /openapi.json", "", "", 200, ""},
		row{"GET /", "", "", 404, CodeNotFound},
		row{"GET /orders/", "", "", 404, CodeNotFound},
		row{"GET /orders/ord-1/nothing", "", "", 404, CodeNotFound},
		row{"GET /orders//ord-1", "", "", 400, CodeBadRequest},
		row{"GET //orders", "", "", 400, CodeBadRequest},
		row{"GET /orders/./ord-1", "", "", 400, CodeBadRequest},
		row{"GET /orders/../health", "", "", 400, CodeBadRequest},
		row{"GET /orders/ord%2D1", "", "", 400, CodeBadRequest},
		row{"GET /orders/ord-1;a=b", "", "", 400, CodeBadRequest},
		row{"GET /orders/batch", "", "", 405, CodeMethodNotAllowed},
		row{"PUT /orders/ord-1", "", "", 405, CodeMethodNotAllowed},
		row{"HEAD /health", "", "", 405, ""},
	)
}

// unsafeRows are the answers to writes and to reads while the last decision is not durable.
func unsafeRows(status int, code Code, readStatus int, readCode Code) (rows []row) {
	for _, q := range append(slices.Clone(accountRequests), adminRequests...) {
		if strings.HasPrefix(q.request, "GET") {
			rows = append(rows, row{q.request, q.body, "admin", readStatus, readCode})
		} else {
			rows = append(rows, row{q.request, q.body, "admin", status, code})
		}
	}
	return append(rows, row{"GET /book/AAA", "", "", readStatus, readCode})
}

// historyRows are the answers to historyRequests, in their order.
func historyRows(answers ...any) (rows []row) {
	for i, request := range historyRequests {
		rows = append(rows, row{request, "", "admin", answers[2*i].(int),
			Code(fmt.Sprint(answers[2*i+1]))})
	}
	return rows
}

// storageRows: admissions stop, reads go on.
func storageRows(status int, code Code) (rows []row) {
	for _, q := range append(slices.Clone(accountRequests), adminRequests...) {
		if strings.HasPrefix(q.request, "GET") {
			rows = append(rows, row{q.request, q.body, "admin", 200, ""})
		} else {
			rows = append(rows, row{q.request, q.body, "admin", status, code})
		}
	}
	return rows
}
