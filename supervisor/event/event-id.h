/* SPDX-License-Identifier: MIT */
#pragma once

/* MESSAGE_ID= of the events that units/troupe.catalog explains in the journal. Never reused. */

#define EVENT_ID_WORKER_DIED      "9e8f1ad7d4ea4f0f8d1c5f0c5f6b3a11"
#define EVENT_ID_COMMAND_DIED     "6b3f0a5d2c7e4d19a8e1f4b7c0935d2e"
#define EVENT_ID_WORKER_RESTARTED "0d1f4c82e5a64d9b9f37c86b5ad2e740"
#define EVENT_ID_WORKER_FAILED    "2f6f6d0f33a94a0ba2a7f5d96e0a7c52"
#define EVENT_ID_WORKER_FAILING   "6b2e9d41c7f84a5ca3d05e18f27b9460"
#define EVENT_ID_VIOLATION        "7d0c6b1e8a5b4f1c9b55f3e2d1a04c83"
#define EVENT_ID_JOB_DEAD         "c4b9e8a71f224d6f8e3a9d7056c1be94"
#define EVENT_ID_BAD_CONFIG       "5a1d3c7e9b8f42e6a0d4c2b1f7e68d05"
#define EVENT_ID_READY            "e1b7a4c2d95f4b38b6f0a83c7d2e1f66"
#define EVENT_ID_STOPPING         "b3f5d8e07c1a4926a7e4f9b20d6c8a17"
#define EVENT_ID_SAFE_MODE        "4c8e1f309d274b6a8f51c2a7d9e0b346"
#define EVENT_ID_NOT_RECYCLED     "0d7a12952606a4dd29e0584449349da7"
#define EVENT_ID_ROLL_STOPPED     "ea2de0053ddce471f600e4ce3933a52b"
#define EVENT_ID_STALLED          "7759c9cc29ae5f3ee85d6149f88fc96a"
#define EVENT_ID_SLOT_LOST        "9d1be1f0a6274c0fb3c8f1c6a7c5e2d4"
#define EVENT_ID_HISTORY          "1f8c0b5e6a7d4c39b2e4d90a7f3c5186"
#define EVENT_ID_STORE            "6c3a0929f2c040b6ac90607ed4a3e06f"
