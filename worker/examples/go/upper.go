// SPDX-License-Identifier: MIT

// A binding for Go in a hundred lines, with a worker and a client upon it; see troupe-binding(7).
//
//	upper             handles jobs: trouped starts it
//	upper GROUP TEXT  has a job done
package main

/*
#include <stdlib.h>
#include <troupe.h>

extern int handle(struct troupe_job *job, void *userdata);

// Macros and callbacks are C's: Go gets functions.
static void set_handler(struct troupe_worker *worker)
{
    troupe_worker_on_job(worker, handle, NULL);
}

static struct troupe_result new_result(void)
{
    return (struct troupe_result)TROUPE_RESULT_INIT;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// check makes an error of -errno.
func check(result C.int) error {
	if result < 0 {
		return syscall.Errno(-result)
	}
	return nil
}

// pointer returns where the data begins, which C may read until its call returns. Never nil.
func pointer(data []byte) unsafe.Pointer {
	return unsafe.Pointer(&append(data, 0)[0])
}

//export handle
func handle(job *C.struct_troupe_job, _ unsafe.Pointer) (status C.int) {
	// A panic must not unwind through C. The job is retried.
	defer func() {
		if trouble := recover(); trouble != nil {
			text := C.CString(fmt.Sprint(trouble))
			defer C.free(unsafe.Pointer(text))
			status = C.troupe_job_retry(job, 1, text)
		}
	}()
	var size C.size_t
	payload := C.troupe_job_payload(job, &size)
	data := C.GoBytes(payload, C.int(size)) // a copy: the payload is gone when the handler returns
	if string(data) == "panic" {
		panic("asked to")
	}
	upper := []byte(strings.ToUpper(string(data)))
	return C.troupe_job_succeed(job, pointer(upper), C.size_t(len(upper)))
}

func work() error {
	// One thread at a time: this goroutine keeps the thread that it is on.
	runtime.LockOSThread()
	var worker *C.struct_troupe_worker
	if result := C.troupe_worker_new(&worker); result < 0 {
		C.troupe_worker_start_error(result)
		return check(result)
	}
	defer C.troupe_worker_free(worker)
	C.set_handler(worker)
	return check(C.troupe_worker_run(worker))
}

func do(group, text string) (string, error) {
	runtime.LockOSThread()
	var client *C.struct_troupe_client
	if err := check(C.troupe_client_connect(&client, nil)); err != nil {
		return "", err
	}
	defer C.troupe_client_free(client)
	name := C.CString(group)
	defer C.free(unsafe.Pointer(name))
	var reference C.uint64_t
	if err := check(C.troupe_client_group(client, name, &reference)); err != nil {
		return "", err
	}
	data, result := []byte(text), C.new_result()
	if err := check(C.troupe_client_do(client, reference, nil, pointer(data), C.size_t(len(data)), &result)); err != nil {
		return "", err
	}
	defer C.troupe_result_release(&result)
	if result.end != C.TROUPE_SUCCEEDED {
		return "", fmt.Errorf("%s: %s", C.GoString(C.troupe_end_name(result.end)), C.GoString(result.reason))
	}
	return C.GoStringN((*C.char)(result.data), C.int(result.size)), nil
}

func main() {
	var err error
	if len(os.Args) == 3 {
		var text string
		if text, err = do(os.Args[1], os.Args[2]); err == nil {
			fmt.Println(text)
		}
	} else {
		err = work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "upper:", err)
		os.Exit(1)
	}
}
