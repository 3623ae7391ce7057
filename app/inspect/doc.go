// Package inspect is what posttrade inspect, why and what-if print: the past of a journal, read
// from its files, also while a server has it open. It changes nothing.
package inspect
