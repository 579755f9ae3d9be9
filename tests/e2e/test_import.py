# SPDX-License-Identifier: MIT
"""troupectl import, on configurations of the kinds that people have."""
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from troupe import TOP, TROUPE_EXEC, TROUPECTL, TestCase

# Each case: what is read (in /srv, which is a directory of the test), how many settings are left out, and all lines of the files
# that come out, without comments and sections. "exec" is troupe-exec with its option. Programs are those in /srv/bin.
CASES = {
    "supervisord: a site with a queue, in several files": (
        {"supervisord.conf": """\
             [unix_http_server]
             file=/run/supervisor.sock   ; the socket
             chmod=0700
             [supervisord]
             logfile=/var/log/supervisor/supervisord.log
             pidfile=/run/supervisord.pid
             [rpcinterface:supervisor]
             supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
             [include]
             files = conf.d/*.conf
             """,
         "conf.d/shop.conf": """\
             [program:shop]
             command=/srv/bin/gunicorn --workers 3 --bind unix:/run/shop.sock shop.wsgi:application
             directory=/srv/app
             user=www-data
             autostart=true
             autorestart=true
             redirect_stderr=true
             stdout_logfile=/var/log/shop/web.log
             stdout_logfile_maxbytes=10MB

             [program:shop-queue]
             command=../bin/celery -A shop worker -l info
             directory=/srv/app
             user=www-data
             numprocs=1
             startsecs=10
             ; tasks may take their time
             stopwaitsecs = 600
             killasgroup=true
             priority=998
             environment=DJANGO_SETTINGS_MODULE="shop.settings",LANG=C.UTF-8

             [group:shop]
             programs=shop,shop-queue
             """}, ["supervisord.conf"], 3,
        {"shop.group": """\
             Type=service
             User=www-data
             ExecStart=/srv/bin/gunicorn --workers 3 --bind unix:/run/shop.sock shop.wsgi:application
             WorkingDirectory=/srv/app
             Autostart=yes
             Restart=always
             KillMode=mixed
             """,
         "shop-queue.group": """\
             Type=service
             User=www-data
             ExecStart=/bin/sh -c 'exec ../bin/celery -A shop worker -l info'
             WorkingDirectory=/srv/app
             Environment=DJANGO_SETTINGS_MODULE=shop.settings
             Environment=LANG=C.UTF-8
             Size=1
             ResetAfterSec=10
             TimeoutStopSec=600
             KillMode=mixed
             """}),
    "supervisord: eight workers of a queue": (
        {"worker.conf": """\
             [program:laravel]
             process_name=%(program_name)s_%(process_num)02d
             command=/srv/bin/php /srv/app/artisan queue:work redis --sleep=3 --tries=3
             autorestart=true
             stopasgroup=true
             killasgroup=true
             user=nobody
             numprocs=8
             stdout_logfile=/dev/stdout
             stdout_logfile_maxbytes=0
             """}, ["worker.conf"], 0,
        {"laravel.group": """\
             Type=service
             User=nobody
             ExecStart=/srv/bin/php /srv/app/artisan queue:work redis --sleep=3 --tries=3
             Size=8
             Restart=always
             """}),
    "supervisord: a port for each process": (
        {"tornado.ini": """\
             [program:front]
             command = /srv/bin/front --port=80%(process_num)02d --name='%(program_name)s: front' --slot %(process_num)d
             process_name = front-%(process_num)d
             numprocs = 4
             numprocs_start = 10
             user = nobody
             [program:back]
             command = /srv/bin/back --slot %(process_num)d
             numprocs = 2
             user = nobody
             """}, ["tornado.ini"], 0,
        {"front.group": r"""
             Type=service
             User=nobody
             ExecStart=/bin/sh -c "exec /srv/bin/front --port=80$(printf %%02d $((10 + %i))) --name='front: front' --slot $((10 + %i))"
             Size=4
             KillMode=mixed
             """,
         "back.group": """\
             Type=service
             User=nobody
             ExecStart=/srv/bin/back --slot %i
             Size=2
             KillMode=mixed
             """}),
    "supervisord: in a container": (
        {"supervisord.conf": """\
             [supervisord]
             nodaemon=true
             user=root
             environment=TZ="Europe/Berlin"

             [program:php-fpm]
             command=/srv/bin/php-fpm --nodaemonize
             autostart=%(ENV_WITH_PHP)s
             stdout_logfile=/dev/stdout
             stdout_logfile_maxbytes=0
             stderr_logfile=/dev/stderr
             stderr_logfile_maxbytes=0
             startretries=0

             [program:nginx]
             command=/srv/bin/nginx -g "daemon off;"
             stopsignal=QUIT
             autorestart=false
             startretries=3

             [program:beat]
             command=/bin/sh -c "exec /srv/bin/celery beat --pidfile= --loglevel=%(ENV_LEVEL)s -n beat.%%h"
             user=nobody
             """}, ["supervisord.conf"], 2,
        {"php-fpm.group": """\
             Type=service
             User=root
             Environment=TZ=Europe/Berlin
             ExecStart=/srv/bin/php-fpm --nodaemonize
             StartLimitBurst=0
             StartLimitIntervalSec=37
             KillMode=mixed
             """,
         "nginx.group": """\
             Type=service
             User=root
             Environment=TZ=Europe/Berlin
             ExecStart=/srv/bin/nginx -g "daemon off;"
             Restart=no
             StartLimitBurst=3
             StartLimitIntervalSec=148
             KillSignal=QUIT
             KillMode=mixed
             """,
         "beat.group": r"""
             Type=service
             User=nobody
             Environment=TZ=Europe/Berlin
             ExecStart=/bin/sh -c 'exec /bin/sh -c "exec /srv/bin/celery beat --pidfile= --loglevel=${LEVEL} -n beat.%%h"'
             KillMode=mixed
             """}),
    "supervisord: long values, comments, listeners": (
        {"etc/app.conf": """\
             # The watcher
             [eventlistener:crashmail]
             command=crashmail -a -m ops@example.org
             events=PROCESS_STATE_EXITED

             [fcgi-program:cgi]
             command=/srv/bin/cgi
             socket=tcp://localhost:9002

             [program:The app]
             command : %(here)s/../bin/app
                 --config "%(here)s/app.ini"   ; where it is
                 # --debug
                 --verbose
             environment =
                 GREETING='hello, world',
                 RATIO="50%%",HOST="%(host_node_name)s",LEVEL=%(ENV_LEVEL)s
             directory = %(here)s
             user = nobody
             umask = 027
             exitcodes = 0,2,75
             autorestart = unexpected
             stopsignal = INT
             stdout_events_enabled = true
             stderr_logfile = NONE
             serverurl = AUTO
             """}, ["etc/app.conf"], 5,
        {"The-app.group": """\
             Type=service
             User=nobody
             ExecStart=/srv/etc/../bin/app --config "/srv/etc/app.ini" --verbose
             Environment='GREETING=hello, world'
             Environment=RATIO=50%
             Environment=HOST=HOSTNAME
             WorkingDirectory=/srv/etc
             SuccessExitStatus=0 2 75
             Restart=on-failure
             KillSignal=INT
             KillMode=mixed
             UMask=027
             """}),
    "supervisord: priorities": (
        {"s.conf": """\
             [program:db]
             command=/srv/bin/db
             user=nobody
             priority=1
             stopasgroup=yes
             [program:cache]
             command=/srv/bin/cache
             user=nobody
             priority=1
             stopasgroup=yes
             [program:app]
             command=/srv/bin/app
             user=nobody
             priority=10
             autostart=False
             stopasgroup=yes
             [program:cron]
             command=/srv/bin/cron
             user=nobody
             stopasgroup=yes
             """}, ["s.conf"], 3,
        {"db.group": "Type=service\nUser=nobody\nExecStart=/srv/bin/db\n",
         "cache.group": "Type=service\nUser=nobody\nExecStart=/srv/bin/cache\n",
         "app.group": "Type=service\nUser=nobody\nExecStart=/srv/bin/app\nAutostart=no\n",
         "cron.group": "Type=service\nUser=nobody\nExecStart=/srv/bin/cron\n"}),
    "cron: that of the system": (
        {"crontab": """\
             # /etc/crontab: system-wide crontab
             SHELL=/bin/sh
             PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
             17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly
             25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
             52 6\t1 * *\tnobody\ttest -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.monthly )
             """}, ["crontab"], 0,
        {"cron.hourly.group": """\
             User=root
             Environment=SHELL=/bin/sh
             Environment=PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
             ExecStart=exec /bin/sh -c 'cd / && run-parts --report /etc/cron.hourly'
             MaxRetries=0
             """,
         "cron.hourly.schedule": "OnCalendar=17 * * * *\nCatchUp=none\n",
         "cron.daily.group": """\
             User=root
             Environment=SHELL=/bin/sh
             Environment=PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
             ExecStart=exec /bin/sh -c 'test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }'
             MaxRetries=0
             """,
         "cron.daily.schedule": "OnCalendar=25 6 * * *\nCatchUp=none\n",
         "cron.monthly.group": """\
             User=nobody
             Environment=SHELL=/bin/sh
             Environment=PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
             ExecStart=exec /bin/sh -c 'test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.monthly )'
             MaxRetries=0
             """,
         "cron.monthly.schedule": "OnCalendar=52 6 1 * *\nCatchUp=none\n"}),
    "cron: a user's": (
        {"tab": """\
             MAILTO="ops@example.org"
             # m h  dom mon dow   command

             # Dump of the shop's database
             30 2 * * * /srv/bin/mysqldump --single-transaction shop | gzip > "/srv/app/shop-$(date +\\%Y\\%m\\%d).sql.gz" 2>/dev/null
             */10 8-18 * * mon-fri /srv/bin/fetch-orders --all
             MAILTO=""
             * * * * * cd /srv/app && php artisan schedule:run >> /dev/null 2>&1
             5 4 * * 0 find /srv/app -name '*.tmp' -mtime +7 -delete
             @hourly sleep 1; /usr/bin/flock -n /run/lock/lock timeout 9 /srv/bin/feed
             """}, ["tab", "--user", "nobody"], 1,
        {"mysqldump.group": r"""
             Description=Dump of the shop's database
             User=nobody
             ExecStart=exec /bin/sh -c '/srv/bin/mysqldump --single-transaction shop | gzip > "/srv/app/shop-$(date +%%Y%%m%%d).sql.gz" 2>/dev/null'
             MaxRetries=0
             """,
         "mysqldump.schedule": "OnCalendar=30 2 * * *\nCatchUp=none\n",
         "fetch-orders.group": "User=nobody\nExecStart=exec /srv/bin/fetch-orders --all\nMaxRetries=0\n",
         "fetch-orders.schedule": "OnCalendar=*/10 8-18 * * mon-fri\nCatchUp=none\n",
         "artisan.group": """\
             User=nobody
             ExecStart=exec /bin/sh -c 'cd /srv/app && php artisan schedule:run >> /dev/null 2>&1'
             MaxRetries=0
             """,
         "artisan.schedule": "OnCalendar=* * * * *\nCatchUp=none\n",
         "find.group": r"""
             User=nobody
             ExecStart=exec /bin/sh -c "find /srv/app -name '*.tmp' -mtime +7 -delete"
             MaxRetries=0
             """,
         "find.schedule": "OnCalendar=5 4 * * 0\nCatchUp=none\n",
         "feed.group": r"""
             User=nobody
             ExecStart=exec /bin/sh -c 'sleep 1; /usr/bin/flock -n /run/lock/lock timeout 9 /srv/bin/feed'
             MaxRetries=0
             """,
         "feed.schedule": "OnCalendar=@hourly\nCatchUp=none\n"}),
    "cron: input": (
        {"tab": """\
             HOME=/srv/app
             ODD="a\x01 b"
             @daily cat%Good morning,%%it is 100\\% "ready".%END-OF-INPUT
             """}, ["tab", "--user", "nobody"], 0,
        {"cat.group": r"""
             User=nobody
             WorkingDirectory=/srv/app
             Environment=HOME=/srv/app
             Environment='ODD=a\x01 b'
             ExecStart=exec /bin/sh -c "{\ncat\n} <<'END-OF-INPUT-'\nGood morning,\n\nit is 100%% \"ready\".\nEND-OF-INPUT\nEND-OF-INPUT-\n"
             MaxRetries=0
             """,
         "cat.schedule": "OnCalendar=@daily\nCatchUp=none\n"}),
    "cron: a package's file": (
        {"cron.d/certs": """\
             # Renewal of certificates: twice a day, at any minute
             SHELL=/bin/bash
             0 */12 * * * root test -x /srv/bin/certbot -a \\! -d /run/none && perl -e 'sleep int(rand(4))' && /srv/bin/certbot -q renew
             -*/15 * * * * nobody [ -x /srv/bin/munin ] && sh /srv/bin/munin
             """}, ["cron.d/certs"], 0,
        {"certbot.group": None, "certbot.schedule": "OnCalendar=0 */12 * * *\nCatchUp=none\n",
         "munin.group": """\
             User=nobody
             Environment=SHELL=/bin/bash
             ExecStart=exec /bin/bash -c '[ -x /srv/bin/munin ] && sh /srv/bin/munin'
             MaxRetries=0
             """,
         "munin.schedule": "OnCalendar=*/15 * * * *\nCatchUp=none\n"}),
    "cron: words, zones, delays": (
        {"tab": """\
             CRON_TZ=America/New_York
             RANDOM_DELAY=45
             @reboot /srv/bin/tunnel --quiet
             @weekly   timeout 1h /srv/bin/orders.sh
             0 9 1,15 JAN-MAR * /srv/bin/orders.sh --again
             0~59 3 * * * /srv/bin/orders.sh --random
             """}, ["tab", "--user", "nobody"], 3,
        {"tunnel.group": "User=nobody\nType=service\nExecStart=/srv/bin/tunnel --quiet\nRestart=no\n",
         "orders.group": """\
             User=nobody
             ExecStart=exec /bin/sh -c 'timeout 1h /srv/bin/orders.sh'
             MaxRetries=0
             """,
         "orders.schedule": "OnCalendar=@weekly America/New_York\nCatchUp=none\n",
         "orders-2.group": "User=nobody\nExecStart=exec /srv/bin/orders.sh --again\nMaxRetries=0\n",
         "orders-2.schedule": "OnCalendar=0 9 1,15 JAN-MAR * America/New_York\nCatchUp=none\n"}),
    "systemd: an application": (
        {"node-app.service": """\
             [Unit]
             Description=Our Node.js application
             Documentation=https://example.org
             After=network.target

             [Service]
             Type=simple
             User=nobody
             WorkingDirectory=/srv/app
             Environment=NODE_ENV=production PORT=3000
             Environment="GREETING=hello world"
             EnvironmentFile=-/etc/default/node-app
             ExecStart=/srv/bin/node \\
                 # the main program
                 server.js
             Restart=always
             RestartSec=10
             StandardOutput=syslog
             StandardError=syslog
             SyslogIdentifier=node-app

             [Install]
             WantedBy=multi-user.target
             """}, ["node-app.service"], 1,
        {"node-app.group": """\
             Type=service
             ExecStart=/srv/bin/node      server.js
             User=nobody
             Description=Our Node.js application
             WorkingDirectory=/srv/app
             Environment=NODE_ENV=production PORT=3000
             Environment="GREETING=hello world"
             EnvironmentFile=-/etc/default/node-app
             Restart=always
             MinSec=10
             MaxSec=10
             """}),
    "systemd: a server with options from a file": (
        {"sshd.service": """\
             [Unit]
             Description=Shell server
             After=network.target auditd.service
             ConditionPathExists=!/etc/ssh/sshd_not_to_be_run

             [Service]
             EnvironmentFile=-/etc/default/ssh
             ExecStartPre=/srv/bin/sshd -t
             ExecStart=/srv/bin/sshd -D $SSHD_OPTS --pid=${DIR}/pid $$5 'a b'
             ExecReload=/srv/bin/sshd -t
             ExecReload=/bin/kill -HUP $MAINPID
             KillMode=process
             Restart=on-failure
             RestartPreventExitStatus=255
             Type=notify
             RuntimeDirectory=sshd
             RuntimeDirectoryMode=0755

             [Install]
             WantedBy=multi-user.target
             Alias=ssh.service
             """}, ["sshd.service", "--user", "root"], 6,
        {"sshd.group": r"""
             Type=notify
             ExecStart=/bin/sh -c "set -f; exec /srv/bin/sshd -D $SSHD_OPTS --pid=${DIR}/pid \\$5 'a b'"
             User=root
             Description=Shell server
             EnvironmentFile=-/etc/default/ssh
             Restart=on-failure
             SuccessExitStatus=SIGHUP SIGINT SIGTERM SIGPIPE
             RestartPreventExitStatus=255
             ReloadSignal=HUP
             KillMode=process
             """}),
    "systemd: a daemon of old": (
        {"mysqld.service": """\
             [Unit]
             Description=Database
             Wants=network-online.target
             [Service]
             Type=forking
             User=nobody
             PIDFile=/run/mysqld/mysqld.pid
             PermissionsStartOnly=true
             ExecStart=/srv/bin/mysqld --daemonize
             ExecStop=/bin/kill -s INT ${MAINPID}
             ExecStopPost=-/bin/rm -f /run/mysqld/mysqld.pid
             TimeoutSec=3min
             LimitNOFILE=10000
             LimitNPROC=4096
             OOMScoreAdjust=-600
             Restart=on-abnormal
             """}, ["mysqld.service"], 7,
        {"mysqld.group": """\
             Type=service
             ExecStart=/srv/bin/mysqld --daemonize
             User=nobody
             Description=Database
             Restart=on-failure
             SuccessExitStatus=SIGHUP SIGINT SIGTERM SIGPIPE
             KillSignal=INT
             TimeoutStartSec=3min
             TimeoutStopSec=3min
             LimitNOFILE=10000
             OOMScoreAdjust=-600
             """}),
    "systemd: instances and drop-ins": (
        {"worker@.service": """\
             [Unit]
             Description=Worker %i of %p
             PartOf=workers.target
             After=queue.service
             [Service]
             User=nobody
             ExecStart=/srv/bin/worker --number %i --host %H
             ExecStart=
             ExecStart=/srv/bin/worker --number %i --state %S/%p --share 100%%
             WorkingDirectory=/srv/app
             Nice=5
             CPUWeight=50
             """,
         "worker@.service.d/10-nice.conf": "[Service]\nNice=10\nEnvironment=A=1\n",
         "worker@3.service.d/local.conf": "[Service]\nMemoryMax=512M\nRestart=always\n",
         "queue.service": "[Service]\nUser=nobody\nExecStart=/srv/bin/queue\nRestart=no\n"}, ["worker@3.service", "queue.service"], 0,
        {"worker@3.group": """\
             Type=service
             ExecStart=/srv/bin/worker --number 3 --state /var/lib/worker --share 100%%
             User=nobody
             Description=Worker 3 of worker
             After=queue
             WorkingDirectory=/srv/app
             Environment=A=1
             Restart=always
             CPUWeight=50
             Nice=10
             MemoryMax=512M
             """,
         "queue.group": "Type=service\nExecStart=/srv/bin/queue\nUser=nobody\nRestart=no\n"}),
    "systemd: a timer": (
        {"backup.service": """\
             [Unit]
             Description=Backup of the home directories
             OnFailure=mail@%n.service
             [Service]
             Type=oneshot
             User=nobody
             Nice=19
             IOSchedulingClass=idle
             ExecStart=/srv/bin/backup --all
             TimeoutStartSec=2h
             """,
         "backup.timer": """\
             [Unit]
             Description=Backup every night
             After=network-online.target
             ConditionACPower=true
             [Timer]
             OnCalendar=*-*-* 02:30:00
             OnCalendar=Sun 12:00
             RandomizedDelaySec=15min
             AccuracySec=1min
             Persistent=true
             [Install]
             WantedBy=timers.target
             """}, ["backup.timer"], 4,
        {"backup.group": """\
             ExecStart=exec /srv/bin/backup --all
             User=nobody
             Description=Backup of the home directories
             MaxRetries=0
             TimeoutSec=2h
             Nice=19
             """,
         "backup.schedule": """\
             Description=Backup every night
             OnCalendar=*-*-* 02:30:00
             OnCalendar=Sun 12:00
             RandomizedDelaySec=15min
             """}),
    "systemd: a timer of intervals, and a service without a type": (
        {"poll.service": "[Service]\nUser=nobody\nExecStart=/srv/bin/poll ${URL} %b\nRestart=on-failure\nRestartSec=30\n",
         "every.timer": "[Timer]\nOnBootSec=1min\nOnUnitActiveSec=5min\nUnit=poll.service\n"}, ["every.timer"], 3,
        {"poll.group": r"""
             ExecStart=exec /bin/sh -c 'set -f; exec /srv/bin/poll ${URL} %%b'
             User=nobody
             MaxRetries=0
             BackoffMinSec=30
             BackoffMaxSec=30
             """,
         "poll.schedule": "OnUnitActiveSec=5min\nCatchUp=none\n"}),
    "systemd: several commands": (
        {"prepare.service": """\
             [Service]
             Type=oneshot
             User=nobody
             RemainAfterExit=yes
             ExecStart=/srv/bin/prepare one "two words"
             ExecStart=/srv/bin/prepare %% $HOME
             [Install]
             WantedBy=multi-user.target
             """}, ["prepare.service"], 2,
        {"prepare.group": r"""
             ExecStart=exec /bin/sh -c 'set -f; /srv/bin/prepare one "two words" && /srv/bin/prepare %% $HOME'
             User=nobody
             MaxRetries=0
             """}),
    "systemd: confined": (
        {"exporter.service": """\
             [Service]
             Type=exec
             DynamicUser=yes
             ExecStart=:/usr/bin/env exporter --web=:9100 $literal
             NoNewPrivileges=true
             ProtectSystem=strict
             ProtectHome=yes
             PrivateTmp=true
             PrivateDevices=yes
             PrivateNetwork=off
             ProtectKernelTunables=true
             ProtectClock=yes
             RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
             RestrictNamespaces=true
             RestrictRealtime=yes
             MemoryDenyWriteExecute=yes
             LockPersonality=yes
             SystemCallArchitectures=native
             SystemCallFilter=@system-service
             SystemCallFilter=~@privileged @resources
             SystemCallErrorNumber=EPERM
             CapabilityBoundingSet=
             AmbientCapabilities=
             ReadWritePaths=-/var/lib/exporter
             UMask=0077
             """}, ["exporter.service"], 6,
        {"exporter.group": """\
             Type=service
             ExecStart=/usr/bin/env exporter --web=:9100 $literal
             User=nobody
             NoNewPrivileges=yes
             ProtectSystem=strict
             ProtectHome=yes
             PrivateTmp=yes
             PrivateNetwork=no
             RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
             RestrictNamespaces=yes
             MemoryDenyWriteExecute=yes
             SystemCallArchitectures=native
             SystemCallFilter=@system-service
             SystemCallFilter=~@privileged @resources
             SystemCallErrorNumber=EPERM
             CapabilityBoundingSet=none
             ReadWritePaths=-/var/lib/exporter
             UMask=0077
             """}),
    "systemd: limits": (
        {"api.service": """\
             [Unit]
             After=network-online.target redis.service
             Requires=redis.service
             StartLimitIntervalSec=60
             StartLimitBurst=5
             [Service]
             Type=notify-reload
             User=nobody
             ExecStart=/srv/bin/api
             Restart=on-failure
             RestartSec=100ms
             RestartMaxDelaySec=1min
             RestartSteps=5
             WatchdogSec=20s
             RuntimeMaxSec=1d
             SuccessExitStatus=143 SIGUSR1
             LimitNOFILE=1024:4096
             MemoryMax=25%
             MemoryHigh=1G
             MemoryAccounting=yes
             CPUQuota=150%
             TasksMax=100
             Slice=api.slice
             KillMode=none
             """}, ["api.service"], 7,
        {"api.group": """\
             Type=notify
             ExecStart=/srv/bin/api
             User=nobody
             MaxAgeSec=1d
             StartLimitIntervalSec=60
             StartLimitBurst=5
             Restart=on-failure
             SuccessExitStatus=SIGHUP SIGINT SIGTERM SIGPIPE
             MinSec=100ms
             MaxSec=1min
             SuccessExitStatus=143 SIGUSR1
             ReloadSignal=SIGHUP
             WatchdogSec=20s
             MemoryHigh=1G
             CPUQuota=150%
             TasksMax=100
             """}),
}


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


class Import(TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="troupe-import-")
        self.addCleanup(directory.cleanup)
        self.top = directory.name
        os.chmod(self.top, 0o755)
        for name in ("app", "etc", "bin"):
            os.mkdir(self.path(name))

    def path(self, name):
        return os.path.join(self.top, name)

    def here(self, text):
        return text.replace("/srv", self.top)

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        Path(self.path(name)).write_text(self.here(text), encoding="utf-8")
        os.chmod(self.path(name), mode)

    def program(self, name, script="exec sleep infinity"):
        self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n", 0o755)

    def run_import(self, *arguments, **options):
        return subprocess.run([TROUPECTL, "import", *arguments], text=True, capture_output=True, cwd=self.top, check=False, **options)

    def imported(self, name):
        """Imports a case. Returns the directory."""
        files, arguments, left, expected = CASES[name]
        for path, text in files.items():
            self.write(path, "".join(re.sub(r"^ {13}", "", line) for line in text.splitlines(keepends=True)))
        for program in set(re.findall(r"/srv/bin/([\w-]+)", str(files) + " /srv/bin/app")):
            if not os.path.exists(self.path(f"bin/{program}")):
                self.program(program)
        ended = self.run_import(*(self.path(word) if word in files or "." in word else word for word in arguments), "--output", self.path("out"))
        self.assertEqual(ended.returncode, 11 if left else 0, ended.stderr)
        self.assertEqual(len(re.findall(r"^troupectl: .*:\d+: not imported: ", ended.stderr, re.M)), left, ended.stderr)
        self.assertEqual(f"troupectl: {left} setting{'s were' if left > 1 else ' was'} not imported" in ended.stderr, left > 0)
        self.assertEqual(sorted(os.listdir(self.path("out"))), sorted(expected))
        for path in expected:
            written = Path(self.path(f"out/{path}"))
            text = re.sub(r"(?m)^(ExecStart=)\S*/troupe-exec --literal --", r"\1exec", written.read_text(encoding="utf-8"))
            # The home directory depends on the machine.
            seen = [line for line in lines(text) if line and line[0] not in "#[" and line != f"WorkingDirectory={pwd.getpwuid(0).pw_dir}"]
            if expected[path] is not None:
                self.assertEqual(seen, lines(self.here(expected[path]).replace("HOSTNAME", os.uname().nodename)), text)
            if os.geteuid() == 0 or "User=root" not in text:
                self.assertIn("as before, this runs as root" if "User=root" in seen else "User=", text.lower() if "User=root" in seen else text + "User=")
            written.write_text(text.replace("ExecStart=exec ", f"ExecStart={TROUPE_EXEC} --literal -- "), encoding="utf-8")
        self.verify("out")
        return self.path("out")

    def verify(self, directory):
        files = sorted(Path(self.path(directory)).iterdir())
        verified = subprocess.run([TROUPECTL, "verify", self.path(directory)], text=True, capture_output=True, check=False)
        self.assertEqual(verified.returncode, 0, verified.stdout + "".join(path.read_text(encoding="utf-8") for path in files))
        self.assertNotIn("runs as root", verified.stderr)

    def lines_of(self, name):
        return sorted(Path(self.path(name)).read_text(encoding="utf-8").splitlines()) if os.path.exists(self.path(name)) else []

    def start(self, directory):
        if os.geteuid() != 0:
            self.skipTest("it needs root to start programs as other users")
        s = self.supervisor(state=True)
        for path in Path(directory).iterdir():
            s.write(path.name, path.read_text(encoding="utf-8"))
        return s.start()

    def slot(self, s, name):
        job = s.ctl("schedule", "run", name, check=True).stdout.strip()
        return s.ctl("wait", job).stdout


for _name in CASES:
    setattr(Import, "test_" + re.sub(r"\W+", "_", _name), lambda self, name=_name: self.imported(name))


class Started(Import):
    """What is imported does what it did."""

    for _name in CASES:
        locals()["test_" + re.sub(r"\W+", "_", _name)] = None

    def test_the_programs_of_supervisord_run(self):
        self.program("front", 'echo "$*" >>/srv/app/seen; exec sleep infinity')
        os.chmod(self.path("app"), 0o777)
        s = self.start(self.imported("supervisord: a port for each process"))
        s.until(lambda: self.lines_of("app/seen") == [f"--port=80{n} --name=front: front --slot {n}" for n in range(10, 14)])

    def test_the_commands_of_a_crontab_run(self):
        self.program("mysqldump", "echo rows")
        os.chmod(self.path("app"), 0o777)
        s = self.start(self.imported("cron: a user's"))
        self.slot(s, "mysqldump")
        [dump] = [name for name in os.listdir(self.path("app")) if name.startswith("shop-")]
        self.assertRegex(dump, r"^shop-\d{8}\.sql\.gz$")

    def test_input_of_a_command_of_cron_arrives(self):
        s = self.start(self.imported("cron: input"))
        self.assertEqual(self.slot(s, "cat"), 'Good morning,\n\nit is 100% "ready".\nEND-OF-INPUT\n')

    def test_variables_of_a_unit_are_expanded(self):
        self.program("prepare", 'for word; do echo "<$word>"; done')
        s = self.start(self.imported("systemd: several commands"))
        self.assertEqual(s.ctl("do", "prepare", check=True).stdout, "<one>\n<two words>\n<%>\n</nonexistent>\n")

    @unittest.skipUnless(shutil.which("systemd-notify"), "systemd-notify is not installed")
    def test_a_server_of_systemd_is_ready_and_reloads(self):
        self.program("sshd", "trap 'echo reloads >>/srv/app/seen' HUP; systemd-notify --ready; while :; do sleep 0.05; done")
        s = self.start(self.imported("systemd: a server with options from a file"))
        self.assertEqual(s.ctl("status", check=True).returncode, 0)
        s.ctl("signal", "sshd", check=True)
        s.until(lambda: self.lines_of("app/seen") == ["reloads"])


class Refusals(Import):
    for _name in CASES:
        locals()["test_" + re.sub(r"\W+", "_", _name)] = None

    def refused(self, file, text, *said):
        self.write(file, text)
        ended = self.run_import(file, "--output", self.path("out"))
        self.assertEqual((ended.returncode, ended.stdout), (7, ""), ended.stderr)
        for line in said:
            self.assertIn(f"troupectl: {file}:{line}\n" if line[0].isdigit() else f"troupectl: {file}: {line}\n", ended.stderr)
        self.assertEqual(len(ended.stderr.splitlines()), len(said), ended.stderr)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_mistakes_have_a_file_and_a_line(self):
        self.refused("tab", "61 * * * * x\nfoo\n0 0 * * *\n@never x\n", "1: '61 * * * *': column 1: the minute must be 0 to 59",
                     "2: neither NAME=VALUE nor the times of a command", "3: no command follows the times",
                     "4: '@never': column 1: a word after @ must be hourly, daily, midnight, weekly, monthly or yearly")
        self.refused("a.conf", "[program:x]\ncommand\n[program:y\n", "2: neither [section], key=value, nor a comment",
                     "3: a section is written [name]")
        self.refused("b.conf", "[supervisord]\nuser=nobody\n[program:x]\ncommand=/bin/sh \"a\n[program:y]\n",
                     "4: command: a quote is not closed", "5: [program:y] has no command=")
        self.refused("c.service", "[Service]\nUser=nobody\nExecStart=/bin/sh 'a\nbad\n", "4: neither [Section], Key=value, nor a comment (# or ;)")
        self.refused("d.service", "[Service]\nUser=nobody\nExecStart=/bin/sh 'a\n", "3: ExecStart: a quote is not closed")
        self.refused("e.service", "[Service]\nUser=nobody\nExecStart=/bin/a\nExecStart=/bin/b\n", "4: a second ExecStart=, which only Type=oneshot may have")
        self.refused("e2.service", "[Service]\nUser=nobody\nExecStart=bin/a\n", "3: ExecStart: the path of the program is not absolute")
        self.write("e4.service", "[Service]\nUser=nobody\nExecStart=/bin/true\n")
        self.refused("e4.timer", "[Timer]\nOnCalendar=Mon-Fry 10:00\n", "2: OnCalendar: column 5: the weekday must be Mon to Sun")
        self.refused("e3.timer", "[Timer]\nUnit=e3.target\n", "Unit=e3.target is no service")
        self.refused("f.service", "[Service]\nUser=nobody\n", "no ExecStart= in [Service]")
        self.refused("f.conf", "[program:x]\nuser=nobody\ncommand=/bin/a %\n", "3: an expression with % is unknown")
        self.refused("g@.service", "[Service]\nExecStart=/bin/a\n", "a template: name an instance, such as g@NAME.service")
        self.refused("g.socket", "[Socket]\nListenStream=/run/g\n", "not imported; the program opens its sockets itself, and watches its files")
        self.refused("h", "# nothing\n", "no program and no command to import")
        Path(self.path("i")).write_bytes(b"0 0 * * * x\n0 0 * * * \xff\n")
        self.assertIn("troupectl: i: not valid UTF-8", self.run_import("i").stderr)
        self.assertIn("troupectl: none.service: no such unit", self.run_import("none.service").stderr)
        self.assertIn("troupectl: none: No such file or directory; units are named NAME.service", self.run_import("none").stderr)

    def test_nothing_is_overwritten(self):
        self.write("tab", "0 0 * * * one\n")
        os.mkdir(self.path("out"))
        ended = self.run_import("tab", "--output", "out")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("troupectl: cannot make the directory out: File exists\n", ended.stderr)
        self.assertEqual(os.listdir(self.path("out")), [])

    def test_without_a_directory_the_files_are_printed(self):
        ended = self.run_import("-", "--user", "nobody", "--quiet", input="0 0 * * * one\nMAILTO=x\n0 1 * * * two\n")
        self.assertEqual((ended.returncode, re.findall(r"^# ---- (.*) ----$", ended.stdout, re.M)),
                         (11, ["one.group", "one.schedule", "two.group", "two.schedule"]))
        self.assertIn("# Not imported: MAILTO=x. Instead: troupectl deaths", ended.stdout)
        self.assertEqual(len(ended.stderr.splitlines()), 1)

    def test_a_service_and_its_timer_are_one_group(self):
        self.write("x.service", "[Service]\nUser=nobody\nExecStart=/bin/true\n")
        self.write("x.timer", "[Timer]\nOnCalendar=daily\nPersistent=yes\n")
        self.write("x.service.d/a.conf", "[Service]\nNice=1\n")
        self.write("y.service", "[Service]\nUser=nobody\nExecStart=/bin/true\n")
        self.write("y.timer", "[Timer]\nOnBootSec=5min\n")
        self.assertIn("# Not imported (y.timer:2): OnBootSec=5min\n#   Instead: troupectl do y\n", self.run_import("y.timer").stdout)
        ended = self.run_import("x.service", "x.timer")
        self.assertEqual((ended.returncode, re.findall(r"^# ---- (.*) ----$", ended.stdout, re.M)), (0, ["x.group", "x.schedule"]))
        self.assertIn("\nNice=1\n", ended.stdout)

    def test_units_whose_names_begin_alike_are_different_groups(self):
        for name, after in ("x.y", "z.timer z.service"), ("x", "z.service"), ("z", ""):
            self.write(f"{name}.service", f"[Unit]\nAfter={after}\n[Service]\nUser=nobody\nExecStart=/bin/{name}\n")
        self.write("z.timer", "[Timer]\nOnCalendar=daily\n")
        ended = self.run_import("x.y.service", "x.service", "z.timer")
        self.assertEqual(re.findall(r"^# ---- (.*) ----$", ended.stdout, re.M), ["x.y.group", "x.group", "z.group", "z.schedule"])
        self.assertEqual(re.findall(r"^After=.*$", ended.stdout, re.M), 2 * ["After=z"])

    def test_a_directory_of_a_unit_is_a_line_of_tmpfiles_d(self):
        unit = "[Service]\nUser=nobody\nGroup=daemon\nRuntimeDirectory=app app/cache\nLogsDirectory=app\nExecStart=/bin/sh\n"
        Path(self.path("app.service")).write_text(unit, encoding="utf-8")
        printed = self.run_import("app.service").stdout
        for path in "/run/app", "/run/app/cache", "/var/log/app":
            self.assertIn(f"Instead: 'd {path} 0755 nobody daemon' in /etc/tmpfiles.d/app.conf", printed)

    def test_each_workaround_of_the_manual_is_in_the_comments(self):
        source = Path(TOP, "supervisor/config/troupe.group.5").read_text(encoding="utf-8")
        source = source[source.index("These settings of units have no counterpart"):]
        keys = re.findall(r"[\w.]+(?= Ns = |\b Ns =)", "\n".join(re.findall(r"^\.It Ic (.*)$", source[:source.index(".Sh FILES")], re.M)))
        self.assertGreater(len(keys), 39)
        for key in keys:
            with self.subTest(key):
                key = key.replace("Condition...", "ConditionHost").replace("Assert...", "AssertHost")
                value = {"Type": "forking", "DynamicUser": "yes"}.get(key, "x")
                Path(self.path("x.service")).write_text(f"[Service]\nUser=nobody\nExecStart=/bin/sh\n{key}={value}\n", encoding="utf-8")
                ended = self.run_import("x.service")
                if key in ("RuntimeMaxSec", "UMask"):
                    continue
                self.assertIn(f"# Not imported (x.service:4): {key}={value}\n#   Instead: ", ended.stdout)
                self.assertNotIn("Instead: no counterpart", ended.stdout)


if __name__ == "__main__":
    unittest.main()
